#include "linnet/core/checkpoint.h"

#include <set>

#include "linnet/core/safetensors.h"

namespace linnet {

void save_checkpoint(const std::string& path, const std::vector<std::pair<std::string, StateDict>>& parts) {
  StateDict all;
  std::set<std::string> names;
  for (const auto& [name, part] : parts) {
    LINNET_CHECK(!name.empty() && name.find('.') == std::string::npos, "save_checkpoint: \"", name,
                 "\" cannot name a part: it is empty or has a dot");
    LINNET_CHECK(names.insert(name).second, "save_checkpoint: part \"", name, "\" is given twice");
    all.add(name, part);
  }
  save_safetensors(path, all);
}

StateDict load_checkpoint(const std::string& path) { return load_safetensors(path); }

StateDict state_dict(const Generator& generator) {
  StateDict state;
  state.set_integer("seed", generator.seed);
  state.set_integer("stream", generator.stream);
  state.set_integer("offset", generator.offset);
  return state;
}

void load_state_dict(Generator& generator, const StateDict& state) {
  generator = {state.integer("seed"), state.integer("stream"), state.integer("offset")};
}

}  // namespace linnet
