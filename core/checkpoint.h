// Checkpoints: several StateDicts in one safetensors file.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "linnet/core/state_dict.h"

namespace linnet {

/// save_checkpoint(path, {{"model", net.state_dict()}, {"optimizer", opt.state_dict()}}), as atomic as
/// save_safetensors.
void save_checkpoint(const std::string& path, const std::vector<std::pair<std::string, StateDict>>& parts);
/// checkpoint.part("model") gives back what was saved as "model".
StateDict load_checkpoint(const std::string& path);

}  // namespace linnet
