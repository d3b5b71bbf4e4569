// Schedules: what the learning rate does over the updates. One schedule an optimizer; call step() after each update.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "linnet/optim/optimizer.h"

namespace linnet::optim {

/// A factor on the rates of all groups as a function of the number of updates made, from 0 on. The optimizer outlives
/// it.
///     Schedule halving(optimizer, [](int64_t t) { return std::pow(0.5, t / 1000); });
class Schedule {
 public:
  Schedule(Optimizer& optimizer, std::function<double(int64_t)> factor);  ///< sets the factor for the first update

  void step();  ///< one more update is made: sets the factor for the next
  int64_t steps() const { return steps_; }
  double factor(int64_t t) const;  ///< after t updates; throws where t is negative

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  Optimizer* optimizer_;
  std::function<double(int64_t)> factor_;
  int64_t steps_ = 0;
};

struct StepDropOptions {
  std::vector<int64_t> at = {};  ///< updates from which on the rate is multiplied, once each
  int64_t every = 0;             ///< and again after each so many updates; 0: never
  double factor = 0.1;
};
/// factor^(number of drops at or before t).
struct StepDrop : Schedule {
  StepDrop(Optimizer& optimizer, const StepDropOptions& options);
};

struct CosineOptions {
  int64_t steps;       ///< updates until the floor is reached, warm-up included
  int64_t warmup = 0;  ///< updates over which the factor rises linearly: (t + 1) / warmup
  double floor = 0;    ///< the factor at the end and after it
};
/// floor + (1 - floor) (1 + cos(pi (t - warmup) / (steps - warmup))) / 2 after the warm-up.
struct Cosine : Schedule {
  Cosine(Optimizer& optimizer, const CosineOptions& options);
};

struct InverseSqrtOptions {
  int64_t warmup = 1;  ///< updates over which the factor rises linearly to 1
};
/// min((t + 1) / warmup, sqrt(warmup / (t + 1))): Vaswani et al. 2017, with the peak at the optimizer's rate.
struct InverseSqrt : Schedule {
  InverseSqrt(Optimizer& optimizer, const InverseSqrtOptions& options = {});
};

struct PlateauOptions {
  double factor = 0.1;  ///< multiplies the rate when nothing better came for more than `patience` values
  int64_t patience = 10;
  double threshold = 1e-4;  ///< better is: by more than threshold |best|
  bool larger_is_better = false;
  double floor = 0;  ///< the smallest factor
};
/// Drops the rate when a value, such as the loss on held-out data, stops improving. Call step(value) for each value.
class Plateau {
 public:
  Plateau(Optimizer& optimizer, const PlateauOptions& options = {});

  void step(double value);  ///< throws for NaN

  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 private:
  Optimizer* optimizer_;
  PlateauOptions options_;
  double best_, factor_ = 1;
  int64_t worse_ = 0;
};

}  // namespace linnet::optim
