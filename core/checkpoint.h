// Checkpoints: several StateDicts in one safetensors file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "linnet/core/random.h"
#include "linnet/core/state_dict.h"

namespace linnet {

/// save_checkpoint(path, {{"model", net.state_dict()}, {"optimizer", opt.state_dict()}}), as atomic as
/// save_safetensors. A part's name is not empty, has no dot and is given once.
void save_checkpoint(const std::string& path, const std::vector<std::pair<std::string, StateDict>>& parts);
/// checkpoint.part("model") gives back what was saved as "model".
StateDict load_checkpoint(const std::string& path);

/// A generator's position in its sequence: seed, stream and offset.
StateDict state_dict(const Generator& generator);
void load_state_dict(Generator& generator, const StateDict& state);

}  // namespace linnet
