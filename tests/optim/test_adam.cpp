#include "linnet/optim/adam.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace linnet;

namespace {

double gradient_at(int t) { return std::sin(3.0 * t) * (t % 4 == 0 ? 10 : 1); }

/// The formulas of the papers, as they stand there.
double reference(int steps, double lr, double eps, double coupled, double decoupled) {
  double theta = 1, m = 0, v = 0;
  for (int t = 1; t <= steps; ++t) {
    double g = gradient_at(t) + coupled * theta;
    m = .9 * m + .1 * g;
    v = .99 * v + .01 * g * g;
    theta -= lr * decoupled * theta;
    theta -= lr * (m / (1 - std::pow(.9, t))) / (std::sqrt(v / (1 - std::pow(.99, t))) + eps);
  }
  return theta;
}

double run(optim::Optimizer& optimizer, Variable& theta, int steps) {
  for (int t = 1; t <= steps; ++t) {
    theta.mutable_grad() = Tensor::full({1}, gradient_at(t), Dtype::f64);
    optimizer.step();
  }
  return theta.item();
}

Variable one() { return Variable::leaf(Tensor::full({1}, 1, Dtype::f64)); }

}  // namespace

TEST_CASE("Adam and AdamW follow their papers' formulas") {
  Variable a = one(), b = one(), c = one();
  optim::Adam plain({a}, {.lr = .01, .beta2 = .99, .eps = .1}),
      coupled({b}, {.lr = .01, .beta2 = .99, .weight_decay = .3});
  optim::AdamW decoupled({c}, {.lr = .01, .beta2 = .99, .weight_decay = .3});
  CHECK(std::abs(run(plain, a, 50) - reference(50, .01, .1, 0, 0)) < 1e-13);
  CHECK(std::abs(run(coupled, b, 50) - reference(50, .01, 1e-8, .3, 0)) < 1e-13);
  CHECK(std::abs(run(decoupled, c, 50) - reference(50, .01, 1e-8, 0, .3)) < 1e-13);
  CHECK(std::abs(b.item() - c.item()) > 1e-3);
}

TEST_CASE("a constant gradient moves Adam by lr a step, since eps comes after bias correction") {
  Variable theta = one();
  optim::Adam adam({theta}, {.lr = .1, .eps = 1});
  for (int t = 1; t <= 3; ++t) {
    theta.mutable_grad() = Tensor::full({1}, 1, Dtype::f64);
    adam.step();
    CHECK(std::abs(theta.item() - (1 - .05 * t)) < 1e-14);
  }
}

TEST_CASE("AdamW decays by 0.01 unless told otherwise, Adam does not") {
  CHECK(optim::AdamWOptions().weight_decay == .01);
  CHECK(optim::AdamOptions().weight_decay == 0);
  Variable theta = one();
  CHECK_THROWS_WITH_AS(optim::AdamW({theta}, {.beta2 = 2}), "adamw: beta2 2 given, wanted: at least 0 and below 1",
                       Error);
}
