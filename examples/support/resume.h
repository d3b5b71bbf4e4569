// Earlier: the run that --resume names, and the folder where it goes on.
#pragma once
#include <string>

#include "support/checkpoints.h"
#include "support/run_directory.h"

namespace example {

class Earlier {
 public:
  /// Opens the run in `folder`, and locks it where it goes on in place: where `out` is empty or the same folder. Throws
  /// Error as RunDirectory does.
  Earlier(const std::string& folder, const std::string& out);

  /// Reads the latest checkpoint and metrics.csv, once the settings are found good.
  void load();
  /// Throws Error where the checkpoint is beyond this --steps.
  void check_steps(int64_t steps) const;
  /// Where it goes on, with these settings: called when everything else stands.
  RunDirectory make(const Json& settings) const;

  const RunDirectory& from() const { return from_; }
  bool in_place() const { return in_place_; }
  const Checkpoint& checkpoint() const { return checkpoint_; }
  const std::string& metrics() const { return metrics_; }

 private:
  RunDirectory from_;
  std::string out_;
  bool in_place_;
  Checkpoint checkpoint_;
  std::string metrics_;
};

/// "Stopped after step 120; copy_task --resume runs/a goes on", on standard error where standard output is lost.
/// Returns kInterrupted.
int say_how_to_go_on(const RunDirectory& run, int64_t step);

}  // namespace example
