#include "linnet/optim/sgd.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace linnet;

namespace {

/// theta after three steps with gradients 1, 2, 3 from theta = 1.
double run(const optim::SGDOptions& options) {
  Variable theta = Variable::leaf(Tensor::full({1}, 1, Dtype::f64));
  optim::SGD sgd({theta}, options);
  for (double g : {1, 2, 3}) {
    theta.mutable_grad() = Tensor::full({1}, g, Dtype::f64);
    sgd.step();
  }
  return theta.item();
}

}  // namespace

TEST_CASE("SGD: plain, momentum, nesterov and both kinds of decay by hand") {
  CHECK(std::abs(run({.lr = .1}) - (1 - .1 * 6)) < 1e-15);
  // m: 1, 2.5, 4.25
  CHECK(std::abs(run({.lr = .1, .momentum = .5}) - (1 - .1 * 7.75)) < 1e-15);
  // g + m/2: 1.5, 3.25, 5.125
  CHECK(std::abs(run({.lr = .1, .momentum = .5, .nesterov = true}) - (1 - .1 * 9.875)) < 1e-15);
  // theta: 1 -> .95 - .1 -> ...; without momentum both kinds of decay are one
  double theta = 1;
  for (double g : {1, 2, 3}) theta = theta * .95 - .1 * g;
  CHECK(std::abs(run({.lr = .1, .weight_decay = .5}) - theta) < 1e-15);
  CHECK(std::abs(run({.lr = .1, .weight_decay = .5, .coupled = false}) - theta) < 1e-15);
  CHECK(std::abs(run({.lr = .1, .momentum = .5, .weight_decay = .5}) -
                 run({.lr = .1, .momentum = .5, .weight_decay = .5, .coupled = false})) > 1e-3);
}

TEST_CASE("SGD says what it does not take") {
  Variable w = Variable::leaf(Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(optim::SGD({w}, {.nesterov = true}), "sgd: nesterov given with momentum 0", Error);
  CHECK_THROWS_WITH_AS(optim::SGD({w}, {.momentum = 1}), "sgd: momentum 1 given, wanted: at least 0 and below 1",
                       Error);
  CHECK_THROWS_WITH_AS(optim::SGD(std::vector<optim::ParameterGroup>{{.parameters = {w}, .beta1 = .5}}),
                       "sgd: a group sets betas, which sgd does not have", Error);
}
