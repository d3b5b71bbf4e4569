// Writer: text that a model makes up, token by token in the recurrent form.
#pragma once
#include <functional>
#include <string>

#include "language_model/vocabulary.h"
#include "linnet/models/causal_lm.h"

namespace language_model {

/// Draws a token that a text may hold.
class Draw {
 public:
  Draw(const Vocabulary& vocabulary, const linnet::models::SamplingOptions& options)
      : vocabulary_(vocabulary), sample_(options) {}
  /// logits (1, vocabulary); at random by the default generator.
  int32_t operator()(const linnet::Tensor& logits);

 private:
  const Vocabulary& vocabulary_;
  linnet::models::Sampler sample_;
  std::vector<double> row_;
};

/// One step of a single sequence: the logits (1, vocabulary) of the token after this one.
linnet::Tensor step(const linnet::models::CausalLM& net, int32_t token, linnet::models::LMState& state);

class Writer {
 public:
  /// context: how many tokens the model was trained to see. Where the state has taken so many, it begins anew with the
  /// last half of them, so that a text may have any length.
  Writer(const linnet::models::CausalLM& net, const Vocabulary& vocabulary, int64_t context)
      : net_(net), vocabulary_(vocabulary), context_(context) {}

  /// The tokens of a prompt. Throws Error where it is empty, not UTF-8, or holds what the vocabulary lacks.
  Tokens encode(const std::string& prompt) const;
  /// Makes so many tokens after the prompt's; show gets the text of each as it comes, and ends it early by false.
  Tokens operator()(const Tokens& prompt, int64_t tokens, const linnet::models::SamplingOptions& options,
                    const std::function<bool(const std::string&)>& show) const;

 private:
  const linnet::models::CausalLM& net_;
  const Vocabulary& vocabulary_;
  int64_t context_;
};

}  // namespace language_model
