// What a stack and a decoder share: a step through all layers; their states saved and loaded, named 0, 1, 2, ...
// Private to models/.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "linnet/core/state_dict.h"
#include "linnet/core/workspace.h"
#include "linnet/nn/layer_norm.h"
#include "linnet/nn/list.h"

namespace linnet::models {

/// One step in place of all blocks, and of the norm behind them where there is one. All of the state is checked first:
/// a step that fails advances no layer.
template <class Block, class State>
void step_layers(const nn::Module& module, const nn::List<Block>& blocks, const std::optional<nn::LayerNorm>& norm,
                 Tensor& h, std::vector<State>& layers, Workspace& workspace) {
  LINNET_CHECK(static_cast<int64_t>(layers.size()) == blocks.size(), module.label(), ": a state of ", layers.size(),
               " layers given, there are ", blocks.size());
  for (int64_t i = 0; i < blocks.size(); ++i) blocks[i].check_state(layers[static_cast<size_t>(i)], h.size(0));
  for (int64_t i = 0; i < blocks.size(); ++i) blocks[i].step_inplace(h, layers[static_cast<size_t>(i)], workspace);
  if (!norm) return;
  Tensor normal = workspace.take(h.shape(), h.dtype(), h.device());
  norm->into(h, normal);
  h.copy_from(normal);
}

template <class State>
StateDict layers_state_dict(const std::vector<State>& layers) {
  StateDict state;
  for (size_t i = 0; i < layers.size(); ++i) state.add(std::to_string(i), layers[i].state_dict());
  return state;
}

/// Throws, changing nothing, where a name or a part does not fit.
template <class State>
void load_layers(std::vector<State>& layers, const StateDict& state) {
  std::vector<State> loaded = layers;
  size_t known = 0;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const StateDict part = state.part(std::to_string(i));
    known += part.tensors().size() + part.texts().size();
    loaded[i].load_state_dict(part);
  }
  const size_t others = state.tensors().size() + state.texts().size() - known;
  LINNET_CHECK(others == 0, "state: ", others, " entries given that belong to none of its ", loaded.size(),
               " layers; load into what make_state gives");
  layers = std::move(loaded);
}

/// The same for layers and the position of the next token beside them.
template <class Layers>
StateDict state_dict_at(const Layers& layers, int64_t position) {
  StateDict state = layers.state_dict();
  state.set_integer("position", static_cast<uint64_t>(position));
  return state;
}
template <class Layers>
void load_at(Layers& layers, int64_t& position, const StateDict& state) {
  const uint64_t at = state.integer("position");
  LINNET_CHECK(at < (uint64_t{1} << 62), "state: position is ", at);
  StateDict rest;
  for (const auto& [name, value] : state.tensors()) rest.set(name, value);
  for (const auto& [name, text] : state.texts())
    if (name != "position") rest.set_text(name, text);
  layers.load_state_dict(rest);
  position = static_cast<int64_t>(at);
}

}  // namespace linnet::models
