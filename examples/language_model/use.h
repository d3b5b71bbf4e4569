// What a trained model is used for: to write, to be measured on held-out text, to be timed.
#pragma once
#include <memory>
#include <string>

#include "language_model/flags.h"
#include "language_model/vocabulary.h"
#include "linnet/models/causal_lm.h"

namespace language_model {

/// The best model of a run, with its settings and its vocabulary.
class Trained {
 public:
  /// Throws Error, naming the file, where one is missing or damaged.
  Trained(const std::string& folder, const Flags& flags);

  const Settings& settings() const { return settings_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const linnet::models::CausalLM& net() const { return *net_; }

 private:
  example::RunDirectory run_;
  Settings settings_;
  Vocabulary vocabulary_;
  std::unique_ptr<linnet::models::CausalLM> net_;
};

// Each returns the program's exit code.
int write(const Flags& flags);        ///< --prompt and what --from's model goes on with, as it comes
int evaluate(const Flags& flags);     ///< bits a character of --evaluate's model
int draw_timing(const Flags& flags);  ///< --timing's picture

}  // namespace language_model
