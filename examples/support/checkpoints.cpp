#include "support/checkpoints.h"

#include <filesystem>
#include <iostream>

#include "linnet/core/error.h"

namespace example {
namespace fs = std::filesystem;

Checkpoints::Checkpoints(std::string folder, CheckpointSchedule schedule)
    : folder_(std::move(folder)), schedule_(schedule), saved_(std::chrono::steady_clock::now()) {}

bool Checkpoints::exist() const {
  std::error_code ignored;
  return fs::exists(path(), ignored) || fs::exists(previous_path(), ignored);
}

bool Checkpoints::due(int64_t step) const {
  if (schedule_.steps > 0 && step % schedule_.steps == 0) return true;
  return schedule_.seconds > 0 &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - saved_).count() >= schedule_.seconds;
}

void Checkpoints::save(const std::vector<std::pair<std::string, linnet::StateDict>>& parts) {
  std::error_code fault;
  if (fs::exists(path(), fault)) {
    // A second name for the old file, so that the latest is never away.
    const std::string link = previous_path() + ".tmp";
    fs::remove(link, fault);
    fs::create_hard_link(path(), link, fault);
    if (fault) fs::copy_file(path(), link, fs::copy_options::overwrite_existing, fault);  // no hard links here
    if (!fault) fs::rename(link, previous_path(), fault);
  }
  linnet::save_checkpoint(path(), parts);
  saved_ = std::chrono::steady_clock::now();
}

Checkpoint Checkpoints::load() const {
  std::error_code ignored;
  const bool latest = fs::exists(path(), ignored), previous = fs::exists(previous_path(), ignored);
  if (!latest && !previous) linnet::fail(folder_, ": holds no checkpoint; start the run again with --out");
  if (!latest) return {previous_path(), linnet::load_checkpoint(previous_path())};
  try {
    return {path(), linnet::load_checkpoint(path())};
  } catch (const linnet::Error& error) {
    if (!previous) throw;
    std::cerr << error.what() << "\ngoing on from the checkpoint before it, " << previous_path() << std::endl;
    return {previous_path(), linnet::load_checkpoint(previous_path())};
  }
}

}  // namespace example
