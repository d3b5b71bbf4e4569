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
  LINNET_CHECK(static_cast<int64_t>(state.layers.size()) == blocks.size(), label(), ": a state of ",
               state.layers.size(), " layers given, there are ", blocks.size());
  for (int64_t i = 0; i < blocks.size(); ++i)  // all of them first: a step that fails advances no layer
    blocks[i].attention.check_state(state.layers[static_cast<size_t>(i)], h.size(0));
  for (int64_t i = 0; i < blocks.size(); ++i) {
    blocks[i].step_inplace(h, state.layers[static_cast<size_t>(i)], state.workspace);
  }
  if (!norm) return;
  Tensor normal = state.workspace.take(h.shape(), h.dtype(), h.device());
  norm->into(h, normal);
  h.copy_from(normal);
}

}  // namespace linnet::models
