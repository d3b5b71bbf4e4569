#include "linnet/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "linnet/optim/sgd.h"

using namespace linnet;
using namespace linnet::optim;

namespace {

struct Fixture {
  Variable w = Variable::leaf(Tensor::zeros({1}));
  SGD optimizer{{w}, {.lr = 2}};
};

/// The rates of the first n updates.
std::vector<double> rates(Optimizer& optimizer, Schedule& schedule, int n) {
  std::vector<double> result;
  for (int i = 0; i < n; ++i, schedule.step()) result.push_back(optimizer.lr());
  return result;
}

void check_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) < 1e-14);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "StepDrop drops before the named updates, counted from 0") {
  StepDrop schedule(optimizer, {.at = {2, 4}});
  check_close(rates(optimizer, schedule, 6), {2, 2, .2, .2, .02, .02});
  StepDrop again(optimizer, {.every = 2, .factor = .5});
  check_close(rates(optimizer, again, 5), {2, 2, 1, 1, .5});
}

TEST_CASE_FIXTURE(Fixture, "Cosine rises over the warm-up, falls to its floor and stays there") {
  Cosine schedule(optimizer, {.steps = 6, .warmup = 2, .floor = .1});
  double half = .1 + .9 * (1 + std::cos(std::numbers::pi / 4)) / 2,
         late = .1 + .9 * (1 - std::cos(std::numbers::pi / 4)) / 2;
  check_close(rates(optimizer, schedule, 9), {1, 2, 2, 2 * half, 2 * .55, 2 * late, .2, .2, .2});
}

TEST_CASE_FIXTURE(Fixture, "InverseSqrt peaks at the end of the warm-up") {
  InverseSqrt schedule(optimizer, {.warmup = 4});
  check_close(rates(optimizer, schedule, 16),
              {.5, 1, 1.5, 2, 2 * std::sqrt(4 / 5.), 2 * std::sqrt(4 / 6.), 2 * std::sqrt(4 / 7.),
               2 * std::sqrt(4 / 8.), 2 * std::sqrt(4 / 9.), 2 * std::sqrt(4 / 10.), 2 * std::sqrt(4 / 11.),
               2 * std::sqrt(4 / 12.), 2 * std::sqrt(4 / 13.), 2 * std::sqrt(4 / 14.), 2 * std::sqrt(4 / 15.), 1});
}

TEST_CASE_FIXTURE(Fixture, "a schedule of one's own is a function") {
  Schedule schedule(optimizer, [](int64_t t) { return 1.0 / static_cast<double>(t + 1); });
  check_close(rates(optimizer, schedule, 3), {2, 1, 2. / 3});
}

TEST_CASE_FIXTURE(Fixture, "a schedule continues where its saved state stood") {
  StepDrop schedule(optimizer, {.at = {3}});
  for (int i = 0; i < 2; ++i) schedule.step();
  StateDict saved = schedule.state_dict();
  Variable v = Variable::leaf(Tensor::zeros({1}));
  SGD other({v}, {.lr = 2});
  StepDrop resumed(other, {.at = {3}});
  resumed.load_state_dict(saved);
  CHECK(resumed.steps() == 2);
  check_close(rates(other, resumed, 3), {2, .2, .2});
}

TEST_CASE_FIXTURE(Fixture, "Plateau drops when nothing better came for more than patience values") {
  Plateau plateau(optimizer, {.factor = .5, .patience = 2, .threshold = .01, .floor = .2});
  std::vector<double> seen;
  for (double value : {10.0, 9.0, 8.95, 9.0, 8.92, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0}) {
    plateau.step(value);
    seen.push_back(optimizer.lr());
  }
  check_close(seen, {2, 2, 2, 2, 1, 1, 1, 1, .5, .5, .5, .4, .4, .4, .4});

  Plateau high(optimizer, {.patience = 0, .larger_is_better = true});
  high.step(1);
  high.step(2);
  CHECK(optimizer.lr() == 2);
  high.step(2);
  CHECK(optimizer.lr() == doctest::Approx(.2));
  Plateau resumed(optimizer, {.patience = 0, .larger_is_better = true});
  CHECK(optimizer.lr() == 2);
  resumed.load_state_dict(high.state_dict());
  CHECK(optimizer.lr() == doctest::Approx(.2));
  resumed.step(1.5);
  CHECK(optimizer.lr() == doctest::Approx(.02));
}

TEST_CASE_FIXTURE(Fixture, "settings that make no schedule are refused") {
  CHECK_THROWS_WITH_AS(
      Cosine(optimizer, {.steps = 5, .warmup = 5}),
      "cosine: 5 steps with a warm-up of 5 given; wanted: a warm-up of at least 0 and more steps than that", Error);
  CHECK_THROWS_WITH_AS(InverseSqrt(optimizer, {.warmup = 0}), "inverse_sqrt: a warm-up of 0 given, wanted: at least 1",
                       Error);
  CHECK_THROWS_WITH_AS(StepDrop(optimizer, {.at = {-1}}), "step_drop: a drop at update -1 given, wanted: at least 0",
                       Error);
  CHECK_THROWS_WITH_AS(Plateau(optimizer, {.factor = 1}), "plateau: factor 1 given, wanted: between 0 and 1", Error);
  Plateau plateau(optimizer);
  CHECK_THROWS_WITH_AS(plateau.step(std::nan("")), "plateau: the value is NaN", Error);
}

TEST_CASE_FIXTURE(Fixture, "schedules refuse what is no function, no update or no state, and then stay") {
  CHECK_THROWS_WITH_AS(Schedule(optimizer, nullptr), "schedule: no function given for the factor", Error);
  Schedule schedule(optimizer, [](int64_t t) { return t < 2 ? 1.0 : std::nan(""); });
  schedule.step();
  CHECK_THROWS_AS(schedule.step(), Error);
  CHECK(schedule.steps() == 1);
  CHECK_THROWS_WITH_AS(schedule.factor(-1), "schedule: the factor at -1 asked for, 0 or more updates wanted", Error);
  Plateau plateau(optimizer);
  const auto state = [](double best, double factor) {
    StateDict s;
    s.set_number("best", best);
    s.set_number("factor", factor);
    s.set_integer("worse", 1);
    return s;
  };
  CHECK_THROWS_WITH_AS(plateau.load_state_dict(state(std::nan(""), .5)), "plateau: best is NaN", Error);
  CHECK_THROWS_WITH_AS(plateau.load_state_dict(state(1, 77)), "plateau: factor is 77, wanted: 0 to 1", Error);
  CHECK(optimizer.lr_factor() == 1);
}
