// Decoder: decoder blocks one after the other, with a last normalisation where they are pre-norm.
#pragma once
#include <optional>

#include "linnet/models/decoder_block.h"
#include "linnet/nn/list.h"

namespace linnet::models {

struct DecoderOptions {
  nn::Required<int64_t> layers;
  DecoderBlockOptions block;
};

/// One state a layer. A copy goes its own way.
struct DecoderState {
  std::vector<DecoderBlockState> layers;
  Workspace workspace = {};  ///< a step's memory, for the next one

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);      ///< throws, changing nothing, where a name or a part does not fit
  DecoderState select(const Tensor& samples) const;  ///< as nn::AttentionState::select
  /// The same in place for the past alone: every row goes on looking at the memory that it has. For beams of one
  /// sample, which look at the same. Throws, changing nothing, unless there is one sample a row.
  void select_past(const Tensor& samples);
};

/// x (batch, time, dim), memory (batch, memory time, memory_dim) -> (batch, time, dim).
class Decoder : public nn::Module {
 public:
  using Options = DecoderOptions;
  Decoder(nn::Module& parent, std::string name, const Options& options);

  /// `memory_keys` leaves the memory's padding out.
  Variable operator()(const Variable& x, const Variable& memory, const KeyMask* memory_keys = nullptr) const;

  /// What every block's cross_weights gives.
  std::vector<Tensor> cross_weights(const Variable& x, const Variable& memory,
                                    const KeyMask* memory_keys = nullptr) const;

  DecoderState make_state(const Variable& memory, const KeyMask* memory_keys = nullptr, int64_t capacity = 16) const;
  /// The next step, x (batch, dim) -> (batch, dim). All of the state is checked before any of it changes.
  Variable step(const Variable& x, DecoderState& state) const;
  /// The same in place, without memory but the state's.
  void step_inplace(Tensor& h, DecoderState& state) const;

  nn::List<DecoderBlock> blocks;
  std::optional<nn::LayerNorm> norm;
};

}  // namespace linnet::models
