// Optimizer: what all optimizers share: parameter groups, the learning rate, state a parameter, saving and loading it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "linnet/autograd/variable.h"
#include "linnet/core/state_dict.h"

namespace linnet::optim {

/// Parameters that share settings; what is not set here comes from the optimizer's options.
struct ParameterGroup {
  std::vector<Variable> parameters;
  std::optional<double> lr = {}, beta1 = {}, beta2 = {}, weight_decay = {};
};

class Updates;  // optim/update.h

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Moves every parameter that has a gradient, one fused pass over memory each, on a GPU one launch for all. A
  /// parameter without one is skipped and its step count stands still; where none has one, that is an error. Parameters
  /// that share memory (tied weights) move once, by the sum of their gradients. Everything is checked before anything
  /// moves or counts.
  void step();
  void clear_grads();

  /// The learning rate in use: of every group that has no rate of its own, the schedule's factor included.
  double lr() const { return lr_ * factor_; }
  void set_lr(double lr);  ///< sets the rate, and the factor to 1
  double lr_factor() const { return factor_; }
  void set_lr_factor(double factor);  ///< what schedules do: multiplies the rates of all groups
  const std::vector<ParameterGroup>& groups() const { return groups_; }

  /// A snapshot: the rate, and for each parameter, by its dotted name (or "parameter<index>" where it has none), its
  /// step count and, once it has moved, its state tensors.
  StateDict state_dict() const;
  /// Copies a snapshot in. Throws, listing what is missing, unexpected and misshapen, and changes nothing then.
  void load_state_dict(const StateDict& state);

 protected:
  /// What an optimizer remembers of one parameter.
  struct Slot {
    std::vector<Variable> tied;  // the parameter, then others that share its memory
    size_t group;
    std::string name;
    int64_t step = 0;           // how often it moved
    std::vector<Tensor> state;  // one a state name; empty before the first step
  };

  /// op names the optimizer in messages and in saved states. Parameters are leaves whose memory is the same or apart.
  Optimizer(const char* op, std::vector<ParameterGroup> groups, double lr, std::vector<std::string> state_names);
  static std::vector<ParameterGroup> one_group(std::vector<Variable> parameters);
  void check_option(const char* name, double value, double low, double below) const;  ///< low <= value < below
  void check_decay_and_betas(double beta1, double beta2, double weight_decay) const;  ///< options', and each group's

  /// Adds the update of one parameter. slot.step already counts this step; lr is the group's, factor included.
  virtual void update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) = 0;

 private:
  [[noreturn]] void fail_overlap(const Slot& slot, const std::string& name, const Shape& shape) const;
  void check(const Slot& slot) const;  // that it can move
  Tensor gradient_of(const Slot& slot) const;

  const char* op_;
  std::vector<ParameterGroup> groups_;
  std::vector<std::string> state_names_;
  std::vector<Slot> slots_;
  double lr_, factor_ = 1;
};

}  // namespace linnet::optim
