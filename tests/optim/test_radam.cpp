#include "linnet/optim/radam.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "linnet/core/checkpoint.h"
#include "support/temp_dir.h"

using namespace linnet;
using optim::RAdam;
using optim::RAdamOptions;

namespace {

Variable scalar(double value) { return Variable::leaf(Tensor::full({1}, value, Dtype::f64)); }

void step(optim::Optimizer& optimizer, Variable& theta, double gradient) {
  theta.mutable_grad() = Tensor::full({1}, gradient, Dtype::f64);
  optimizer.step();
}

/// theta after each of n steps from theta = start, with gradient(theta).
std::vector<double> path(const RAdamOptions& options, double start, int n,
                         const std::function<double(double)>& gradient) {
  Variable theta = scalar(start);
  RAdam optimizer({theta}, options);
  std::vector<double> result;
  for (int i = 0; i < n; ++i) {
    step(optimizer, theta, gradient(theta.item()));
    result.push_back(theta.item());
  }
  return result;
}

void check_close(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) <= tolerance);
}

double one(double) { return 1; }

}  // namespace

TEST_CASE("RA1: the size of the first steps, threshold 5 and 4") {
  check_close(path({.lr = 1e-3}, 1, 10, one),
              {.999, .998, .997, .996, .995, .9949741789, .9949414401, .9949027018, .9948585970, .9948095989}, 6e-11);
  std::vector<double> four = path({.lr = 1e-3, .threshold = 4}, 1, 10, one);
  CHECK(std::abs(four[4] - .9959826885) < 6e-11);
  CHECK(std::abs(four[9] - .9957922874) < 6e-11);
}

TEST_CASE("RA2: unrectified steps grow with the gradient, or are skipped") {
  auto steep = [](double theta) { return 1e4 * theta; };
  check_close(path({.lr = 1e-3}, 1, 2, steep), {-9, 33.6315789}, 5e-8);
  check_close(path({.lr = 1e-3, .skip_unrectified = true}, 1, 5, steep), {1, 1, 1, 1, 1}, 0);
  CHECK(path({.lr = 1e-3, .skip_unrectified = true}, 1, 6, steep)[5] < 1);
  // Decay still applies to the steps that are skipped.
  check_close(path({.lr = .1, .weight_decay = .5, .skip_unrectified = true}, 1, 2, one), {.95, .9025}, 1e-15);
}

TEST_CASE("RA3: groups with their own rates do not share a step size") {
  for (double other : {0.0, 1e-2}) {
    Variable a = scalar(1), b = scalar(1);
    RAdam optimizer(
        std::vector<optim::ParameterGroup>{{.parameters = {a}, .lr = 1e-3}, {.parameters = {b}, .lr = other}});
    for (int i = 0; i < 10; ++i) {
      a.mutable_grad() = Tensor::full({1}, 1, Dtype::f64);
      b.mutable_grad() = Tensor::full({1}, 1, Dtype::f64);
      optimizer.step();
    }
    CHECK(std::abs((1 - a.item()) * (other / 1e-3) - (1 - b.item())) < 1e-14);
    if (other == 0) CHECK(b.item() == 1);
  }
}

TEST_CASE("RA6: decoupled and coupled decay") {
  CHECK(std::abs(path({.lr = .01, .weight_decay = .1}, 1, 10, one)[9] - .9384929996) < 6e-11);
  CHECK(std::abs(path({.lr = .01, .weight_decay = .1, .coupled = true}, 1, 10, one)[9] - .9431565681) < 6e-11);
}

TEST_CASE("RA8: a gradient of zero moves nothing, with eps or without") {
  for (double eps : {1e-8, 0.0}) {
    std::vector<double> wanted(20, 1.0);
    CHECK(path({.eps = eps}, 1, 20, [](double) { return 0; }) == wanted);
  }
}

TEST_CASE("RA10: eps stands beside sqrt(v), before bias correction") {
  double total = path({.lr = 1}, 1, 20, [](double) { return 1e-8; })[19];
  CHECK(std::abs(1 - total - .0937282825) < 6e-11);
}

TEST_CASE("RA11: a run saved after 6 steps and resumed equals the undisturbed one bit for bit") {
  test_support::TempDir dir;
  Variable theta = scalar(1);
  RAdam first({theta}, {.lr = 1e-3});
  for (int i = 0; i < 6; ++i) step(first, theta, 1);
  StateDict model;
  model.set("theta", theta.value());
  save_checkpoint(dir / "c", {{"model", model}, {"optimizer", first.state_dict()}});

  StateDict saved = load_checkpoint(dir / "c");
  Variable resumed = Variable::leaf(saved.part("model").get("theta").to(default_device()));
  RAdam second({resumed}, {.lr = 1e-3});
  second.load_state_dict(saved.part("optimizer"));
  for (int i = 0; i < 6; ++i) step(second, resumed, 1);
  CHECK(resumed.item() == path({.lr = 1e-3}, 1, 12, one)[11]);
  CHECK(std::abs(resumed.item() - .9946983412) < 6e-11);
}

TEST_CASE("rho and r have the values of the paper's formulas") {
  double rho[] = {1, 1.9994998, 2.9986660, 3.9974988, 4.9959980, 5.9941638, 6.9919960, 7.9894948};
  for (int t = 1; t <= 8; ++t) CHECK(std::abs(optim::rectification(t, .999, 5).rho - rho[t - 1]) < 6e-8);
  auto r = [](int t, double beta2, double threshold) { return optim::rectification(t, beta2, threshold).r; };
  CHECK(std::abs(r(5, .999, 4) - .0173115032) < 6e-11);
  CHECK(std::abs(r(6, .999, 5) - .0258211128) < 6e-11);
  CHECK(std::abs(r(7, .999, 5) - .0327388144) < 6e-11);
  CHECK(std::abs(r(8, .999, 5) - .0387382770) < 6e-11);
  CHECK(std::abs(r(10, .999, 5) - .0489980134) < 6e-11);
  CHECK(std::abs(r(6, .9, 5) - .2551768065) < 6e-11);
  CHECK(std::abs(r(6, .99, 5) - .0816791958) < 6e-11);
}

TEST_CASE("the first rectified step is 6 with threshold 5 and 5 with threshold 4, whatever beta2") {
  for (double beta2 : {.9, .99, .999}) {
    CHECK_FALSE(optim::rectification(5, beta2, 5).rectified);
    CHECK(optim::rectification(6, beta2, 5).rectified);
    CHECK_FALSE(optim::rectification(4, beta2, 4).rectified);
    CHECK(optim::rectification(5, beta2, 4).rectified);
  }
}

TEST_CASE("a short memory is never rectified: rho_inf <= threshold, also where rho_inf - 4 is 0") {
  for (double beta2 : {0.0, .5, .6, 2.0 / 3})
    for (int64_t t : {1, 6, 1000, 1000000}) CHECK_FALSE(optim::rectification(t, beta2, 5).rectified);
  for (int64_t t : {1, 1000}) CHECK_FALSE(optim::rectification(t, .6, 4).rectified);
  CHECK(optim::rectification(1000000000, .999, 5).r > .99);
  CHECK(optim::rectification(1000000000, .999, 5).r <= 1);
}

TEST_CASE("the descent of theta^2") {
  check_close(path({.lr = .1}, 1, 8, [](double theta) { return 2 * theta; }),
              {.8, .6210526316, .4623033599, .3228296333, .2016479631, .1995180406, .1969662261, .1940838561}, 6e-11);
}

TEST_CASE("options out of range are refused by name") {
  Variable w = scalar(1);
  auto make = [&](const RAdamOptions& options) { RAdam optimizer({w}, options); };
  CHECK_THROWS_WITH_AS(make({.lr = -1}), "radam: lr -1 given, wanted: at least 0 and below inf", Error);
  CHECK_THROWS_WITH_AS(make({.lr = std::nan("")}), "radam: lr nan given, wanted: at least 0 and below inf", Error);
  CHECK_THROWS_WITH_AS(make({.beta1 = 1}), "radam: beta1 1 given, wanted: at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(make({.beta2 = 1.5}), "radam: beta2 1.5 given, wanted: at least 0 and below 1", Error);
  CHECK_THROWS_WITH_AS(make({.eps = -1}), "radam: eps -1 given, wanted: at least 0 and below inf", Error);
  CHECK_THROWS_WITH_AS(make({.weight_decay = -1}), "radam: weight_decay -1 given, wanted: at least 0 and below inf",
                       Error);
  CHECK_THROWS_WITH_AS(make({.threshold = 3}), "radam: threshold 3 given, wanted: at least 4 and below inf", Error);
}
