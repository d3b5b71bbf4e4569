#include "support/run_directory.h"

#include <filesystem>

#include "linnet/core/error.h"

namespace example {
namespace fs = std::filesystem;

bool RunDirectory::holds_run(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path + "/settings.json", ignored);
}

RunDirectory RunDirectory::create(const std::string& path, const Json& settings) {
  if (holds_run(path)) {
    linnet::fail(path, ": holds a run already; --resume ", path,
                 " goes on with it, --out with another folder starts anew");
  }
  std::error_code fault;
  fs::create_directories(path, fault);
  if (fault) linnet::fail(path, ": cannot be made: ", fault.message());
  RunDirectory run(path);
  run.save_settings(settings);
  return run;
}

RunDirectory RunDirectory::open(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) linnet::fail(path, ": there is no such folder");
  if (!holds_run(path)) linnet::fail(path, ": holds no run (no settings.json); give the folder that --out named");
  return RunDirectory(path);
}

std::string RunDirectory::unused(const std::string& path) {
  std::error_code ignored;
  std::string candidate = path;
  for (int i = 2; fs::exists(candidate, ignored); ++i) candidate = path + "-" + std::to_string(i);
  return candidate;
}

}  // namespace example
