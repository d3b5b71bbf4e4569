#include "linnet/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace linnet::optim {

namespace {

int64_t saved_count(const char* op, const StateDict& state, const char* name) {
  uint64_t count = state.integer(name);
  LINNET_CHECK(count < (uint64_t(1) << 62), op, ": ", name, " is ", count);
  return static_cast<int64_t>(count);
}

std::function<double(int64_t)> step_drop(const StepDropOptions& options) {
  LINNET_CHECK(options.factor >= 0 && std::isfinite(options.factor), "step_drop: factor ", options.factor, " given");
  LINNET_CHECK(options.every >= 0, "step_drop: every ", options.every, " given, wanted: at least 0");
  for (int64_t at : options.at) LINNET_CHECK(at >= 0, "step_drop: a drop at update ", at, " given, wanted: at least 0");
  return [options](int64_t t) {
    int64_t drops = std::count_if(options.at.begin(), options.at.end(), [t](int64_t at) { return at <= t; });
    if (options.every > 0) drops += t / options.every;
    return std::pow(options.factor, static_cast<double>(drops));
  };
}

std::function<double(int64_t)> cosine(const CosineOptions& options) {
  LINNET_CHECK(options.warmup >= 0 && options.steps > options.warmup, "cosine: ", options.steps,
               " steps with a warm-up of ", options.warmup,
               " given; wanted: a warm-up of at least 0 and more steps than that");
  LINNET_CHECK(options.floor >= 0 && options.floor <= 1, "cosine: floor ", options.floor, " given, wanted: 0 to 1");
  return [options](int64_t t) {
    if (t < options.warmup) return static_cast<double>(t + 1) / static_cast<double>(options.warmup);
    double done = static_cast<double>(std::min(t, options.steps) - options.warmup) /
                  static_cast<double>(options.steps - options.warmup);
    return options.floor + (1 - options.floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
  };
}

std::function<double(int64_t)> inverse_sqrt(const InverseSqrtOptions& options) {
  LINNET_CHECK(options.warmup >= 1, "inverse_sqrt: a warm-up of ", options.warmup, " given, wanted: at least 1");
  double warmup = static_cast<double>(options.warmup);
  return [warmup](int64_t t) {
    double n = static_cast<double>(t) + 1;
    return std::min(n / warmup, std::sqrt(warmup / n));
  };
}

}  // namespace

Schedule::Schedule(Optimizer& optimizer, std::function<double(int64_t)> factor)
    : optimizer_(&optimizer), factor_(std::move(factor)) {
  LINNET_CHECK(factor_, "schedule: no function given for the factor");
  optimizer_->set_lr_factor(factor_(0));
}

double Schedule::factor(int64_t t) const {
  LINNET_CHECK(t >= 0, "schedule: the factor at ", t, " asked for, 0 or more updates wanted");
  return factor_(t);
}

void Schedule::step() {
  optimizer_->set_lr_factor(factor_(steps_ + 1));
  ++steps_;
}

StateDict Schedule::state_dict() const {
  StateDict state;
  state.set_integer("step", static_cast<uint64_t>(steps_));
  return state;
}

void Schedule::load_state_dict(const StateDict& state) {
  int64_t steps = saved_count("schedule", state, "step");
  optimizer_->set_lr_factor(factor_(steps));
  steps_ = steps;
}

StepDrop::StepDrop(Optimizer& optimizer, const StepDropOptions& options) : Schedule(optimizer, step_drop(options)) {}
Cosine::Cosine(Optimizer& optimizer, const CosineOptions& options) : Schedule(optimizer, cosine(options)) {}
InverseSqrt::InverseSqrt(Optimizer& optimizer, const InverseSqrtOptions& options)
    : Schedule(optimizer, inverse_sqrt(options)) {}

Plateau::Plateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(&optimizer),
      options_(options),
      best_(options.larger_is_better ? -std::numeric_limits<double>::infinity()
                                     : std::numeric_limits<double>::infinity()) {
  LINNET_CHECK(options.factor > 0 && options.factor < 1, "plateau: factor ", options.factor,
               " given, wanted: between 0 and 1");
  LINNET_CHECK(options.patience >= 0, "plateau: patience ", options.patience, " given, wanted: at least 0");
  LINNET_CHECK(options.threshold >= 0, "plateau: threshold ", options.threshold, " given, wanted: at least 0");
  LINNET_CHECK(options.floor >= 0 && options.floor <= 1, "plateau: floor ", options.floor, " given, wanted: 0 to 1");
  optimizer_->set_lr_factor(1);
}

void Plateau::step(double value) {
  LINNET_CHECK(!std::isnan(value), "plateau: the value is NaN");
  double margin = std::isfinite(best_) ? options_.threshold * std::abs(best_) : 0;
  if (options_.larger_is_better ? value > best_ + margin : value < best_ - margin) {
    best_ = value;
    worse_ = 0;
  } else if (++worse_ > options_.patience) {
    factor_ = std::max(options_.floor, factor_ * options_.factor);
    worse_ = 0;
  }
  optimizer_->set_lr_factor(factor_);
}

StateDict Plateau::state_dict() const {
  StateDict state;
  state.set_number("best", best_);
  state.set_number("factor", factor_);
  state.set_integer("worse", static_cast<uint64_t>(worse_));
  return state;
}

void Plateau::load_state_dict(const StateDict& state) {
  double best = state.number("best"), factor = state.number("factor");
  int64_t worse = saved_count("plateau", state, "worse");
  LINNET_CHECK(!std::isnan(best), "plateau: best is NaN");
  LINNET_CHECK(factor >= 0 && factor <= 1, "plateau: factor is ", factor, ", wanted: 0 to 1");
  optimizer_->set_lr_factor(factor);
  best_ = best;
  factor_ = factor;
  worse_ = worse;
}

}  // namespace linnet::optim
