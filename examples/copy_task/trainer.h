// Trainer: the training of the copy task.
#pragma once
#include "copy_task/model.h"
#include "copy_task/settings.h"
#include "support/training.h"

namespace copy_task {

/// The data need no position in a checkpoint, since a step's batch is a function of (seed, step).
class Trainer : public example::Training {
 public:
  Trainer(Learner& learner, const Settings& settings);

 private:
  example::Pass pass() override;
  void draw_curve(const example::RunDirectory& run, const std::string& subtitle) const override;
  void check(const Window& window) const override;

  const Learner& learner_;
  Settings settings_;
};

}  // namespace copy_task
