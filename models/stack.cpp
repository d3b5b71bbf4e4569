#include "linnet/models/stack.h"

#include "linnet/models/layer_states.h"

namespace linnet::models {

StateDict StackState::state_dict() const { return layers_state_dict(layers); }

void StackState::load_state_dict(const StateDict& state) { load_layers(layers, state); }

StackState StackState::select(const Tensor& samples) const {
  StackState chosen;
  for (const auto& layer : layers) chosen.layers.push_back(layer.select(samples));
  return chosen;
}

Stack::Stack(nn::Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), blocks(*this, "blocks", options.layers, options.block) {
  if (options.block.pre_norm) {
    norm.emplace(*this, "norm", nn::LayerNormOptions{.dim = options.block.dim, .eps = options.block.norm_eps});
  }
}

Variable Stack::operator()(const Variable& x, const KeyMask* keys) const {
  Variable h = x;
  for (const Block& block : blocks) h = block(h, keys);
  return norm ? (*norm)(h) : h;
}

StackState Stack::make_state(int64_t batch, int64_t capacity) const {
  StackState state;
  for (const Block& block : blocks) state.layers.push_back(block.make_state(batch, capacity));
  return state;
}

Variable Stack::step(const Variable& x, StackState& state) const {
  Tensor h = x.value().clone();
  step_inplace(h, state);
  return h;
}

void Stack::step_inplace(Tensor& h, StackState& state) const {
  step_layers(*this, blocks, norm, h, state.layers, state.workspace);
}

}  // namespace linnet::models
