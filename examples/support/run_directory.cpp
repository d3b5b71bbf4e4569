#include "support/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "linnet/core/error.h"
#include "support/checkpoints.h"
#include "support/program.h"

namespace example {
namespace fs = std::filesystem;

namespace {

/// Whether the file holds settings of the same names: those of a run, and not of another program.
bool are_alike(const std::string& file, const Json& settings) {
  try {
    const Json old = read_json(file);
    const auto items = settings.items();
    return old.size() == settings.size() &&
           std::all_of(items.begin(), items.end(), [&](const auto& item) { return old.contains(item.key()); });
  } catch (const linnet::Error&) {
    return false;
  }
}

}  // namespace

bool RunDirectory::holds_run(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path + "/settings.json", ignored);
}

void RunDirectory::check_unused(const Json& settings) const {
  if (holds_run(path_) && Checkpoints(path_).exist()) {
    linnet::fail(path_, ": holds a run already; --resume ", path_,
                 " goes on with it, --out with another folder starts anew");
  }
  for (const char* name :
       {"settings.json", "checkpoint.safetensors", "checkpoint-previous.safetensors", "metrics.csv", "validation.csv",
        "tokenizer.model", "characters.txt", "model.safetensors", "curve.svg", "summary.json"}) {
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(file(name), ignored))) continue;
    const bool by_a_start = name == std::string("settings.json") || name == std::string("tokenizer.model");
    if (by_a_start && are_alike(file("settings.json"), settings)) continue;
    linnet::fail(file(name), ": is there already, and a run would overwrite it; give --out another folder");
  }
}

RunDirectory RunDirectory::create(const std::string& path, const Json& settings) {
  std::error_code fault;
  const bool made = fs::create_directories(path, fault);
  if (fault) linnet::fail(path, ": cannot be made: ", fault.message());
  RunDirectory run(path);
  run.lock();
  run.check_unused(settings);
  try {
    run.save_settings(settings);
  } catch (const linnet::Error&) {
    if (made) fs::remove(path, fault);
    throw;
  }
  return run;
}

RunDirectory RunDirectory::open(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) linnet::fail(path, ": there is no such folder");
  if (!holds_run(path)) linnet::fail(path, ": holds no run (no settings.json); give the folder that --out named");
  return RunDirectory(path);
}

void RunDirectory::lock() {
  // On the folder itself: no file stays behind, and the kernel lets go of it whatever ends the process.
  const int folder = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // no right to list it
  lock_ = std::shared_ptr<void>(nullptr, [folder](void*) { ::close(folder); });
  // Any other fault: a file system without locks.
  if (::flock(folder, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    linnet::fail(path_, ": is in use by another ", program_name(),
                 "; wait for it to end, or give --out another folder");
}

std::string RunDirectory::unused(const std::string& program, const std::string& attention, int64_t seed) {
  return unused("runs/" + program + "-" + attention + "-seed" + std::to_string(seed));
}

std::string RunDirectory::unused(const std::string& path) {
  std::error_code ignored;
  std::string candidate = path;
  for (int i = 2; fs::exists(candidate, ignored); ++i) candidate = path + "-" + std::to_string(i);
  return candidate;
}

}  // namespace example
