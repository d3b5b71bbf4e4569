// CausalLM: a causal transformer over tokens: logits of the next one, for a whole sequence or step by step, and
// generation.
#pragma once
#include "linnet/models/positions.h"
#include "linnet/models/sampling.h"
#include "linnet/models/stack.h"
#include "linnet/nn/embedding.h"

namespace linnet::models {

struct CausalLMOptions {
  nn::Required<int64_t> vocab;
  nn::Required<int64_t> dim;
  nn::Required<int64_t> layers;
  nn::Required<int64_t> heads;
  int64_t hidden = 0;    ///< of the feed-forward nets; 0 means 4 dim
  int64_t max_time = 0;  ///< the longest sequence; learned positions want it, for sinusoidal ones 0 means no limit
  nn::AttentionKind kind = nn::AttentionKind::linear;
  int64_t window = -1;  ///< of local attention, as in nn::AttentionOptions
  bool pre_norm = true;
  double dropout = 0;
  Positions positions = Positions::learned;
  bool tie_head = false;  ///< the head uses the embedding's weight
  nn::Activation activation = nn::Activation::gelu;
  double eps = 0;                 ///< of linear attention's denominator
  nn::Features feature_map = {};  ///< of linear attention
};

/// What the recurrent form knows of the past. A copy goes its own way.
struct LMState {
  StackState stack;
  int64_t position = 0;  ///< tokens so far

  StateDict state_dict() const;
  /// For a state from make_state. Throws, changing nothing, where a name is missing or unexpected or a part does not
  /// fit.
  void load_state_dict(const StateDict& state);
  LMState select(const Tensor& samples) const;  ///< as nn::AttentionState::select
};

struct GenerateOptions {
  nn::Required<int64_t> tokens;  ///< how many to make
  double temperature = 1;        ///< these three as in SamplingOptions
  int64_t top_k = 0;
  double top_p = 1;
  Generator* generator = nullptr;  ///< the default generator where not given
};

/// head(stack(positions(embed(tokens)))). A root (`CausalLM net({.vocab = 12, ...})`) or a part of another model.
class CausalLM : public nn::Model {
 public:
  using Options = CausalLMOptions;
  explicit CausalLM(const Options& options);
  CausalLM(nn::Module& parent, std::string name, const Options& options);

  /// tokens i32 (batch, time) -> logits (batch, time, vocab). `keys` leaves padding out.
  Variable operator()(const Tensor& tokens, const KeyMask* keys = nullptr) const;

  /// `capacity` as in nn::Attention::make_state.
  LMState make_state(int64_t batch, int64_t capacity = 16) const;
  /// The next token of each sequence, i32 (batch) -> logits (batch, vocab). An error while a tape records. Allocates
  /// nothing after the first steps, but for a softmax cache that grows beyond its capacity, for features that are not
  /// fused and for logits that someone keeps.
  Tensor step(const Tensor& tokens, LMState& state) const;

  /// Continues prompt, i32 (batch, time), in the recurrent form: i32 (batch, options.tokens). What a row becomes
  /// depends on its prompt, its place in the batch and the generator, not on the other rows. Throws before any work
  /// where the prompt is empty, holds a token that is not in the vocabulary, or prompt and tokens together exceed
  /// max_time; and while a tape records.
  Tensor generate(const Tensor& prompt, const GenerateOptions& options) const;

  nn::Embedding embed;
  AnyPositions positions;
  Stack stack;
  nn::Linear head;

 private:
  CausalLM(nn::Module* parent, std::string name, const Options& options);
  void check_not_recording(const char* what) const;

  int64_t vocab_, max_time_;
};

}  // namespace linnet::models
