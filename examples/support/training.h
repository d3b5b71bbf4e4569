// Training: the loop of a training program with its files (metrics, checkpoints, curve), its line of progress, Ctrl-C,
// and going on from where a run was left.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "linnet/data/loader.h"
#include "linnet/nn/module.h"
#include "linnet/optim/optimizer.h"
#include "linnet/optim/schedule.h"
#include "support/checkpoints.h"
#include "support/interrupt.h"
#include "support/metrics.h"
#include "support/progress.h"
#include "support/run_directory.h"

namespace example {

struct TrainingOptions {
  int64_t steps;       ///< train up to so many
  double minutes = 0;  ///< or for so long, evaluations left out; 0: any time
  double clip = 0;     ///< largest gradient norm; 0 does not clip
};

/// What one step computed while a tape recorded.
struct Pass {
  linnet::Variable loss;     ///< the mean over what is counted
  int64_t correct, counted;  ///< of the predictions
  int64_t tokens;            ///< that the speed counts
};

/// A program derives from this and says what a step computes; a program with a data set gives its loader's position.
class Training {
 public:
  Training(linnet::nn::Module& net, std::unique_ptr<linnet::optim::Optimizer> optimizer,
           const std::function<linnet::optim::Schedule(linnet::optim::Optimizer&)>& schedule,
           const TrainingOptions& options);
  virtual ~Training() = default;

  /// The step at which a checkpoint was saved.
  static uint64_t step_of(const Checkpoint& checkpoint);
  /// Takes everything back from a checkpoint: weights, optimizer, schedule, random state, data position, step, sums.
  /// metrics: the text of the run's metrics.csv.
  void restore(const Checkpoint& checkpoint, std::string metrics);
  /// Trains until done() with a checkpoint at the start, now and then, and at the end. False where a signal or lost
  /// output ended it early; then the last step is saved too.
  bool train(const RunDirectory& run, const InterruptGuard& guard);
  /// False where it could not be written: no error, for training is worth more than its picture; the first time a
  /// warning says so.
  bool save_curve(const RunDirectory& run, const std::string& subtitle);

  bool done() const;  ///< all steps are made, or the minutes are over
  int64_t step() const { return step_; }
  int64_t steps() const { return options_.steps; }  ///< to train up to
  double seconds() const { return seconds_; }       ///< of training, those before a resume included
  double tokens_per_second() const { return seconds_ > 0 ? static_cast<double>(tokens_) / seconds_ : 0; }

 protected:
  /// Sums since the last row of the metrics.
  struct Window {
    double loss = 0, norm = 0;
    int64_t correct = 0, counted = 0, steps = 0;
  };

  virtual Pass pass() = 0;
  virtual void draw_curve(const RunDirectory& run, const std::string& subtitle) const = 0;
  virtual linnet::data::Position* position() { return nullptr; }
  /// Called when a step has moved the weights.
  virtual void moved() {}
  /// Asked after each step and before the first of a resumed run; after the evaluation a checkpoint is saved. One that
  /// is interrupted leaves it due.
  virtual bool evaluation_due() const { return false; }
  virtual void evaluate(const RunDirectory&, const InterruptGuard&) {}
  /// More to remember in a checkpoint.
  virtual void save_more(linnet::StateDict&) const {}
  virtual void restore_more(const linnet::StateDict&) {}
  /// Throws Error where sums from a checkpoint cannot be; of its own accord `correct` is at most `counted`.
  virtual void check(const Window&) const {}

 private:
  void train_step();
  bool evaluate_if_due(const RunDirectory& run, const InterruptGuard& guard, Progress& line);  ///< whether it was
  void log(MetricsWriter& metrics);
  void save(Checkpoints& checkpoints);
  ProgressState progress() const;

  linnet::nn::Module& net_;
  std::unique_ptr<linnet::optim::Optimizer> optimizer_;
  linnet::optim::Schedule schedule_;
  TrainingOptions options_;
  int64_t step_ = 0, tokens_ = 0;
  double rate_ = 0;                 // of the last step
  double seconds_ = 0, speed_ = 0;  // speed: steps a second, lately
  double token_speed_ = 0;
  Window window_, shown_;
  double logged_at_ = 0;  // seconds_ at the last row
  int64_t logged_step_ = 0, logged_tokens_ = 0;
  std::chrono::duration<double> evaluating_{};  // since train() began
  std::string earlier_metrics_;
  bool warned_ = false;
};

/// Sums and times of checkpoints, for restore_more: throws Error, naming it, where a number is not 0 or more, or not in
/// least .. most.
double amount(const linnet::StateDict& state, const std::string& name);
int64_t count(const linnet::StateDict& state, const std::string& name, int64_t least, int64_t most);

}  // namespace example
