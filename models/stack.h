// Stack: blocks one after the other, with a last normalisation where they are pre-norm.
#pragma once
#include <optional>

#include "linnet/models/block.h"
#include "linnet/nn/list.h"

namespace linnet::models {

struct StackOptions {
  nn::Required<int64_t> layers;
  BlockOptions block;
};

/// One attention state a layer. A copy goes its own way.
struct StackState {
  std::vector<nn::AttentionState> layers;
  Workspace workspace = {};  ///< a step's memory, for the next one

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);    ///< throws, changing nothing, where a name or a part does not fit
  StackState select(const Tensor& samples) const;  ///< as nn::AttentionState::select
};

/// x (batch, time, dim) -> (batch, time, dim).
class Stack : public nn::Module {
 public:
  using Options = StackOptions;
  Stack(nn::Module& parent, std::string name, const Options& options);

  /// `keys` leaves padding out.
  Variable operator()(const Variable& x, const KeyMask* keys = nullptr) const;

  StackState make_state(int64_t batch, int64_t capacity = 16) const;
  /// The next step, x (batch, dim) -> (batch, dim). All of the state is checked before any of it changes.
  Variable step(const Variable& x, StackState& state) const;
  /// The same in place, without memory but the state's.
  void step_inplace(Tensor& h, StackState& state) const;

  nn::List<Block> blocks;
  std::optional<nn::LayerNorm> norm;
};

}  // namespace linnet::models
