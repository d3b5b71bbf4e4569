// EncoderDecoder: a transformer from one sequence of tokens to another (Vaswani et al. 2017): logits of a whole target,
// or step by step, and decoding: greedy, by sampling, by beam search.
#pragma once
#include "linnet/models/beam_search.h"
#include "linnet/models/decoder.h"
#include "linnet/models/positions.h"
#include "linnet/models/sampling.h"
#include "linnet/models/stack.h"
#include "linnet/nn/embedding.h"

namespace linnet::models {

struct EncoderDecoderOptions {
  nn::Required<int64_t> vocab;  ///< of the target
  nn::Required<int64_t> dim;
  nn::Required<int64_t> heads;
  int64_t source_vocab = 0;  ///< 0 means vocab
  int64_t encoder_layers = 6;
  int64_t decoder_layers = 6;
  int64_t hidden = 0;           ///< of the feed-forward nets; 0 means 4 dim
  int64_t max_time = 0;         ///< the longest target; learned positions want it, for sinusoidal ones 0 means no limit
  int64_t max_source_time = 0;  ///< the longest source; 0 means max_time
  nn::AttentionKind kind = nn::AttentionKind::linear;        ///< of both sides' attention to themselves
  std::optional<nn::AttentionKind> decoder_kind = {};        ///< of the target's, where it is another: causal
  nn::AttentionKind cross_kind = nn::AttentionKind::linear;  ///< of the target's attention to the source
  int64_t window = -1;                                       ///< of local attention, as in nn::AttentionOptions
  bool pre_norm = true;
  double dropout = 0;  ///< of every branch, of the hidden units, and of what the positions were added to
  Positions positions = Positions::sinusoidal;
  bool tie_head = false;         ///< the head uses the target embedding's weight
  bool tie_source = false;       ///< the source's embedding uses the target's weight; wants one vocabulary
  bool scale_embeddings = true;  ///< by sqrt(dim), section 3.4
  nn::Activation activation = nn::Activation::gelu;
  double eps = 0;                 ///< of linear attention's denominator
  nn::Features feature_map = {};  ///< of linear attention
};

/// What the recurrent form knows of the source and of the target so far. A copy goes its own way.
struct EncoderDecoderState {
  DecoderState decoder;
  int64_t position = 0;  ///< target tokens so far

  StateDict state_dict() const;
  /// For a state from make_state, of a source of any length. Throws, changing nothing, where a name is missing or
  /// unexpected or a part does not fit.
  void load_state_dict(const StateDict& state);
  EncoderDecoderState select(const Tensor& samples) const;  ///< as nn::AttentionState::select
};

struct DecodeOptions {
  nn::Required<int32_t> start;   ///< stands before the target, and not in the result
  nn::Required<int32_t> end;     ///< ends a target
  nn::Required<int64_t> tokens;  ///< at most so many, the end counted
  double temperature = 0;        ///< these three as in SamplingOptions; 0 is greedy
  int64_t top_k = 0;
  double top_p = 1;
  Generator* generator = nullptr;  ///< the default generator where not given
};

/// head(decoder(positions(embed(target)), encoder(source_positions(source_embed(source))))). A root or a part of
/// another model. A mask of source tokens (`keys`, or nullptr) leaves padding out, everywhere.
class EncoderDecoder : public nn::Model {
 public:
  using Options = EncoderDecoderOptions;
  explicit EncoderDecoder(const Options& options);
  EncoderDecoder(nn::Module& parent, std::string name, const Options& options);

  /// source i32 (batch, source time), target i32 (batch, time) -> logits (batch, time, vocab); logits of step t depend
  /// on target tokens 0 .. t.
  Variable operator()(const Tensor& source, const KeyMask* keys, const Tensor& target) const;
  /// Its first half: the memory (batch, source time, dim).
  Variable encode(const Tensor& source, const KeyMask* keys = nullptr) const;
  /// Its second half.
  Variable decode(const Variable& memory, const KeyMask* keys, const Tensor& target) const;

  /// How much each step of the target looks at each token of the source, layer by layer: (batch, time, heads, source
  /// time). An error while a tape records.
  std::vector<Tensor> cross_weights(const Tensor& source, const KeyMask* keys, const Tensor& target) const;

  /// Encodes the sources, with no target token so far; `capacity` as in nn::Attention::make_state. An error while a
  /// tape records, as step, generate and search are.
  EncoderDecoderState make_state(const Tensor& source, const KeyMask* keys = nullptr, int64_t capacity = 16) const;
  /// The next target token of each sample, i32 (batch) -> logits (batch, vocab). Allocates nothing after the first
  /// steps, but for a softmax cache that grows beyond its capacity, for features that are not fused (as efficient
  /// attention's) and for logits that someone keeps.
  Tensor step(const Tensor& tokens, EncoderDecoderState& state) const;

  /// Targets, i32 (batch, n) with n <= options.tokens: n is the longest, the others are filled up with the end. What a
  /// row becomes depends on its source, its place in the batch and the generator, not on the other rows. Throws before
  /// any work where a number does not fit the model.
  Tensor generate(const Tensor& source, const KeyMask* keys, const DecodeOptions& options) const;
  /// The best targets of each sample that beam_search finds.
  std::vector<std::vector<Hypothesis>> search(const Tensor& source, const KeyMask* keys,
                                              const BeamOptions& options) const;

  nn::Embedding embed;
  AnyPositions positions;
  nn::Embedding source_embed;
  AnyPositions source_positions;
  nn::Dropout dropout;
  Stack encoder;
  Decoder decoder;
  nn::Linear head;

 private:
  EncoderDecoder(nn::Module* parent, std::string name, const Options& options);
  void check_tokens(const char* what, const Tensor& tokens, int64_t most) const;
  void check_decoding(int32_t start, int32_t end, int64_t tokens) const;
  Variable embedded(const nn::Embedding& embedding, const AnyPositions& place, const Tensor& tokens) const;

  int64_t vocab_, max_time_, max_source_time_;
  double scale_;  ///< of embeddings
};

}  // namespace linnet::models
