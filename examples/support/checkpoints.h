// Checkpoints: when a training run saves, under which names, and what it goes on from.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "linnet/core/checkpoint.h"

namespace example {

struct CheckpointSchedule {
  int64_t steps = 500;  ///< save every so many steps; 0: never for the steps
  double seconds = 60;  ///< and where so many seconds went by since the last save
};

struct Checkpoint {
  std::string path;  ///< the file, for messages
  linnet::StateDict state;
};

/// Keeps checkpoint.safetensors (the latest) and checkpoint-previous.safetensors in one folder.
class Checkpoints {
 public:
  explicit Checkpoints(std::string folder, CheckpointSchedule schedule = {});

  bool exist() const;
  bool due(int64_t step) const;
  /// At every moment the folder holds a whole latest checkpoint; the one before it becomes the previous.
  void save(const std::vector<std::pair<std::string, linnet::StateDict>>& parts);
  /// The latest; where it cannot be read, the previous, with a line on standard error that says so. Throws Error where
  /// there is none.
  Checkpoint load() const;
  std::string path() const { return folder_ + "/checkpoint.safetensors"; }
  std::string previous_path() const { return folder_ + "/checkpoint-previous.safetensors"; }

 private:
  std::string folder_;
  CheckpointSchedule schedule_;
  std::chrono::steady_clock::time_point saved_;
};

}  // namespace example
