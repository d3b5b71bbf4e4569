#include "linnet/models/decoder.h"

#include "linnet/models/layer_states.h"

namespace linnet::models {

StateDict DecoderState::state_dict() const { return layers_state_dict(layers); }

void DecoderState::load_state_dict(const StateDict& state) { load_layers(layers, state); }

DecoderState DecoderState::select(const Tensor& samples) const {
  DecoderState chosen;
  for (const auto& layer : layers) chosen.layers.push_back({layer.self.select(samples), layer.cross.select(samples)});
  return chosen;
}

void DecoderState::select_past(const Tensor& samples) {
  std::vector<nn::AttentionState> chosen;
  for (const auto& layer : layers) {
    chosen.push_back(layer.self.select(samples));
    const int64_t rows = layer.self.batch().value_or(samples.size(0));
    LINNET_CHECK(samples.size(0) == rows, "state: ", samples.size(0), " samples given, one for each of ", rows,
                 " rows wanted");
  }
  for (size_t i = 0; i < layers.size(); ++i) layers[i].self = std::move(chosen[i]);
}

Decoder::Decoder(nn::Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), blocks(*this, "blocks", options.layers, options.block) {
  const BlockOptions& block = options.block.block;
  if (block.pre_norm) norm.emplace(*this, "norm", nn::LayerNormOptions{.dim = block.dim, .eps = block.norm_eps});
}

Variable Decoder::operator()(const Variable& x, const Variable& memory, const KeyMask* memory_keys) const {
  Variable h = x;
  for (const DecoderBlock& block : blocks) h = block(h, memory, memory_keys);
  return norm ? (*norm)(h) : h;
}

std::vector<Tensor> Decoder::cross_weights(const Variable& x, const Variable& memory,
                                           const KeyMask* memory_keys) const {
  std::vector<Tensor> weights;
  Variable h = x;
  for (const DecoderBlock& block : blocks) {
    weights.push_back(block.cross_weights(h, memory, memory_keys));
    h = block(h, memory, memory_keys);
  }
  return weights;
}

DecoderState Decoder::make_state(const Variable& memory, const KeyMask* memory_keys, int64_t capacity) const {
  DecoderState state;
  for (const DecoderBlock& block : blocks) state.layers.push_back(block.make_state(memory, memory_keys, capacity));
  return state;
}

Variable Decoder::step(const Variable& x, DecoderState& state) const {
  Tensor h = x.value().clone();
  step_inplace(h, state);
  return h;
}

void Decoder::step_inplace(Tensor& h, DecoderState& state) const {
  step_layers(*this, blocks, norm, h, state.layers, state.workspace);
}

}  // namespace linnet::models
