#include "support/best_model.h"

#include <filesystem>

#include "linnet/core/safetensors.h"

namespace example {
namespace fs = std::filesystem;

void load_best(linnet::nn::Module& net, const RunDirectory& run, const char* first) {
  const std::string file = run.file("model.safetensors");
  std::error_code ignored;
  LINNET_CHECK(fs::exists(file, ignored), run.path(), ": holds no model yet; the first is kept ", first);
  const linnet::StateDict state = linnet::load_safetensors(file);
  naming(file, [&] { net.load_state_dict(state); });
}

void copy_best(const RunDirectory& from, const RunDirectory& to) {
  for (const char* name : {"validation.csv", "model.safetensors"}) {
    std::error_code ignored;
    if (fs::exists(from.file(name), ignored)) fs::copy_file(from.file(name), to.file(name));
  }
}

}  // namespace example
