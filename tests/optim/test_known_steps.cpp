// Optimizers and clipping on inputs that broke other projects, with the values that are right (computed elsewhere in
// f64): RA1-RA11, LS6, CK8 and AG10 of the list of numerics.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "linnet/optim/clip.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/sgd.h"

using namespace linnet;
using optim::RAdam;
using optim::RAdamOptions;

namespace {

Variable number(double x) { return Variable::leaf(Tensor::scalar(x, Dtype::f64)); }

void step(optim::Optimizer& optimizer, Variable& p, double gradient) {
  p.mutable_grad() = Tensor::scalar(gradient, Dtype::f64);
  optimizer.step();
}

/// theta after each of n steps from 1, with gradient g(theta).
std::vector<double> path(const RAdamOptions& options, int n, const std::function<double(double)>& g) {
  Variable theta = number(1);
  RAdam optimizer({theta}, options);
  std::vector<double> values;
  for (int i = 0; i < n; ++i) {
    step(optimizer, theta, g(theta.item()));
    values.push_back(theta.item());
  }
  return values;
}

double one(double) { return 1; }

void check_path(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got[i] - wanted[i]) <= 1e-9 * std::max(1.0, std::abs(wanted[i])));
  }
}

}  // namespace

TEST_CASE("RAdam: the first ten steps with a constant gradient, for both thresholds (RA1)") {
  check_path(path({.lr = 1e-3}, 10, one),
             {.999, .998, .997, .996, .995, .9949741789, .9949414401, .9949027018, .9948585970, .9948095989});
  const std::vector<double> paper = path({.lr = 1e-3, .threshold = 4}, 10, one);
  check_path({paper[3], paper[4], paper[9]}, {.996, .9959826885, .9957922874});
}

TEST_CASE("RAdam: a parabola from 1 with a large rate") {
  check_path(path({.lr = .1}, 8, [](double x) { return 2 * x; }),
             {.8, .6210526316, .4623033599, .3228296333, .2016479631, .1995180406, .1969662261, .1940838561});
}

TEST_CASE("RAdam: large gradients in the first steps, taken or skipped (RA2)") {
  const auto steep = [](double x) { return 1e4 * x; };
  const std::vector<double> taken = path({.lr = 1e-3}, 2, steep);
  CHECK(taken[0] == doctest::Approx(-9).epsilon(1e-9));
  CHECK(taken[1] == doctest::Approx(33.6315789).epsilon(1e-8));
  check_path(path({.lr = 1e-3, .skip_unrectified = true}, 5, steep), std::vector<double>(5, 1.0));
}

TEST_CASE("RAdam: groups with other rates do not share a step size (RA3)") {
  for (const double other : {0.0, 1e-2}) {
    Variable a = number(1), b = number(1);
    std::vector<optim::ParameterGroup> groups(2);
    groups[0].parameters = {a};
    groups[1].parameters = {b};
    groups[1].lr = other;
    RAdam optimizer(groups, {.lr = 1e-3});
    for (int i = 0; i < 10; ++i) {
      b.mutable_grad() = Tensor::scalar(1, Dtype::f64);
      step(optimizer, a, 1);
      CHECK(1 - b.item() == doctest::Approx((1 - a.item()) * other / 1e-3).epsilon(1e-9));
    }
    CHECK(a.item() == doctest::Approx(.9948095989).epsilon(1e-9));
  }
}

TEST_CASE("RAdam: decoupled and coupled weight decay (RA6)") {
  CHECK(path({.lr = .01, .weight_decay = .1}, 10, one)[9] == doctest::Approx(.9384929996).epsilon(1e-9));
  CHECK(path({.lr = .01, .weight_decay = .1, .coupled = true}, 10, one)[9] ==
        doctest::Approx(.9431565681).epsilon(1e-9));
}

TEST_CASE("RAdam: gradients of 0 move nothing (RA8)") {
  for (const double eps : {1e-8, 0.0})
    check_path(path({.eps = eps}, 20, [](double) { return 0.0; }), std::vector<double>(20, 1.0));
}

TEST_CASE("RAdam: eps stands beside sqrt(v), before bias correction (RA10)") {
  const double end = path({.lr = 1}, 20, [](double) { return 1e-8; })[19];
  CHECK(std::abs((1 - end) - .0937282825) <= 1e-9);
}

TEST_CASE("RAdam: the step count survives saving and loading (RA11)") {
  Variable first = number(1);
  RAdam before({first}, {.lr = 1e-3});
  for (int i = 0; i < 6; ++i) step(before, first, 1);
  Variable second = number(first.item());
  RAdam after({second}, {.lr = 1e-3});
  after.load_state_dict(before.state_dict());
  for (int i = 0; i < 6; ++i) step(after, second, 1);
  CHECK(second.item() == doctest::Approx(.9946983412).epsilon(1e-9));
}

TEST_CASE("RAdam: the length of the average and the factor r") {
  const double rho[] = {1, 1.9994998, 2.9986660, 3.9974988, 4.9959980, 5.9941638, 6.9919960, 7.9894948};
  for (int t = 1; t <= 8; ++t) CHECK(std::abs(optim::rectification(t, .999, 5).rho - rho[t - 1]) <= 1e-7);
  CHECK(optim::rectification(5, .999, 4).r == doctest::Approx(.0173115032).epsilon(1e-8));
  CHECK(optim::rectification(6, .999, 5).r == doctest::Approx(.0258211128).epsilon(1e-8));
  CHECK(optim::rectification(10, .999, 5).r == doctest::Approx(.0489980134).epsilon(1e-8));
  CHECK(optim::rectification(6, .99, 5).r == doctest::Approx(.0816791958).epsilon(1e-8));
  CHECK(optim::rectification(6, .9, 5).r == doctest::Approx(.2551768065).epsilon(1e-8));
  for (const double beta2 : {.999, .99, .9}) {
    CHECK_FALSE(optim::rectification(5, beta2, 5).rectified);
    CHECK(optim::rectification(6, beta2, 5).rectified);
    CHECK(optim::rectification(5, beta2, 4).rectified);
  }
  for (const double beta2 : {.6, .5, .1, 0.0})  // rho never exceeds 4; for 0.6 rho_inf - 4 is 0
    for (int t : {1, 2, 10, 10'000}) CHECK_FALSE(optim::rectification(t, beta2, 4).rectified);
}

TEST_CASE("clip_grad_norm: a norm whose square overflows, and an infinity (LS6)") {
  Variable p = Variable::leaf(Tensor::zeros({100}), "deep.weight");
  p.mutable_grad() = Tensor::full({100}, 1e20);
  CHECK(optim::clip_grad_norm({p}, 1) == doctest::Approx(1e21).epsilon(1e-6));
  for (float g : p.grad().to_vector<float>()) CHECK(g == doctest::Approx(.1).epsilon(1e-6));
  p.mutable_grad().mutable_data<float>()[7] = INFINITY;
  const std::vector<float> before = p.grad().to_vector<float>();
  std::string message;
  try {
    optim::clip_grad_norm({p}, 1);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.find("deep.weight") != std::string::npos);
  CHECK(p.grad().to_vector<float>() == before);
}

TEST_CASE("loading a state a hundred times appends nothing (CK8)") {
  Variable p = Variable::leaf(Tensor::full({50}, 1));
  RAdam optimizer({p});
  p.mutable_grad() = Tensor::full({50}, 1);
  optimizer.step();
  const StateDict state = optimizer.state_dict();
  optimizer.load_state_dict(state);
  const int64_t live = memory_stats().live;
  for (int i = 0; i < 100; ++i) optimizer.load_state_dict(state);
  CHECK(memory_stats().live == live);
  const StateDict again = optimizer.state_dict();
  CHECK(again.tensors().size() == state.tensors().size());
  CHECK(again.texts().size() == state.texts().size());
}

TEST_CASE("tied weights move once, by the sum of their gradients (AG10)") {
  const Tensor shared = Tensor::scalar(1);
  Variable first = Variable::leaf(shared), second = Variable::leaf(shared);
  optim::SGD optimizer({first, second}, {.lr = .1});
  first.mutable_grad() = Tensor::scalar(2);
  second.mutable_grad() = Tensor::scalar(3);
  optimizer.step();
  CHECK(first.item() == doctest::Approx(.5));
  CHECK(second.item() == doctest::Approx(.5));
}
