// Trainer: the training of the copy task.
#pragma once
#include "copy_task/data.h"
#include "copy_task/settings.h"
#include "linnet/models/causal_lm.h"
#include "support/training.h"

namespace copy_task {

/// The data need no position in a checkpoint, since a step's batch is a function of (seed, step).
class Trainer : public example::Training {
 public:
  Trainer(linnet::models::CausalLM& net, const Settings& settings);

 private:
  example::Pass pass() override;
  void draw_curve(const example::RunDirectory& run, const std::string& subtitle) const override;
  void check(const Window& window) const override;

  linnet::models::CausalLM& net_;
  Settings settings_;
  TaskSize size_;
  linnet::Device device_;
};

}  // namespace copy_task
