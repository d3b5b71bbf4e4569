// Trainer: the training loop of the copy task with its files: metrics, checkpoints, curve.
#pragma once
#include <optional>

#include "copy_task/data.h"
#include "copy_task/settings.h"
#include "linnet/models/causal_lm.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/schedule.h"
#include "support/checkpoints.h"
#include "support/interrupt.h"
#include "support/metrics.h"
#include "support/progress.h"
#include "support/run_directory.h"

namespace copy_task {

/// The step at which a checkpoint was saved.
uint64_t step_of(const example::Checkpoint& checkpoint);

class Trainer {
 public:
  Trainer(linnet::models::CausalLM& net, const Settings& settings);

  /// Takes everything back from a checkpoint: weights, optimizer, schedule, random state, step, sums; the data need no
  /// state, since a step's batch is a function of (seed, step). metrics: the text of the run's metrics.csv.
  void restore(const example::Checkpoint& checkpoint, std::string metrics);
  /// Trains up to settings.steps with a checkpoint at the start, now and then, and at the end. False where a signal or
  /// lost output ended it early; then the last step is saved too.
  bool train(const example::RunDirectory& run, const example::InterruptGuard& guard);
  /// False where it could not be written: no error, for training is worth more than its picture; the first time a
  /// warning says so.
  bool save_curve(const example::RunDirectory& run, const std::string& subtitle);

  int64_t step() const { return step_; }
  double seconds() const { return seconds_; }  ///< of training, those before a resume included
  double tokens_per_second() const;

 private:
  /// Sums since the last row of the metrics.
  struct Window {
    double loss = 0, norm = 0;
    int64_t correct = 0, counted = 0, steps = 0;
  };

  void train_step();
  void log(example::MetricsWriter& metrics);
  void save(example::Checkpoints& checkpoints);
  void draw_curve(const example::RunDirectory& run, const std::string& subtitle) const;
  example::ProgressState progress() const;

  linnet::models::CausalLM& net_;
  Settings settings_;
  TaskSize size_;
  linnet::Device device_;
  linnet::optim::RAdam optimizer_;
  linnet::optim::StepDrop schedule_;
  int64_t step_ = 0;
  double rate_ = 0;                 // of the last step
  double seconds_ = 0, speed_ = 0;  // speed: steps a second, lately
  Window window_, shown_;
  double logged_at_ = 0;  // seconds_ at the last row
  int64_t logged_step_ = 0;
  std::string earlier_metrics_;
  bool warned_ = false;
};

}  // namespace copy_task
