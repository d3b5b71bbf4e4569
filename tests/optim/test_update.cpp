#include "linnet/optim/update.h"

#include <doctest/doctest.h>

#include <cmath>

#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/close.h"
#include "support/levels.h"

using namespace linnet;

namespace {

struct Arrays {
  Tensor g, m, v, theta;
};

Arrays arrays(int64_t n, Dtype dtype) {
  Generator random{3, 1, 0};
  return {random.normal({n}, 0, 1, dtype), random.normal({n}, 0, 1, dtype), random.uniform({n}, 0, 2, dtype),
          random.normal({n}, 0, 1, dtype)};
}

const AdaptiveStep<double> kStep = {.9, .1, .99, .01, .2, .98, .03, 1.5, 1e-3, true};

}  // namespace

TEST_CASE("every level makes the same step as the plain loops") {
  for (Dtype dtype : {Dtype::f32, Dtype::f64})
    for (int64_t n : {0, 1, 7, 16, 1003})
      for (bool adaptive : {true, false}) {
        Arrays first;
        Tensor descent_first;
        AdaptiveStep<double> step = kStep;
        step.adaptive = adaptive;
        for_each_level([&] {
          Arrays x = arrays(n, dtype);
          optim::adaptive_update(x.g, x.m, x.v, x.theta, step);
          Arrays y = arrays(n, dtype);
          Tensor none;
          optim::descent_update(y.g, y.m, y.theta, {.9, .1, .99, .05, adaptive});
          optim::descent_update(y.g, none, y.theta, {0, .1, .99, .05, false});
          if (!first.g.defined()) {
            first = x;
            descent_first = y.theta;
            return;
          }
          double tolerance = dtype == Dtype::f32 ? 1e-6 : 1e-14;
          CHECK(test::deviation(x.m, first.m) <= tolerance);
          CHECK(test::deviation(x.v, first.v) <= tolerance);
          CHECK(test::deviation(x.theta, first.theta) <= tolerance);
          CHECK(test::deviation(y.theta, descent_first) <= tolerance);
        });
      }
}

TEST_CASE("an element whose denominator is 0 only shrinks, at every level") {
  for_each_level([] {
    Tensor g = Tensor::from<float>({0, 1}, {2}), m = Tensor::zeros({2}), v = Tensor::zeros({2}),
           theta = Tensor::full({2}, 1);
    AdaptiveStep<double> step = kStep;
    step.eps = step.decay_gradient = 0;
    step.shrink = .5;
    optim::adaptive_update(g, m, v, theta, step);
    CHECK(theta.to_vector<float>()[0] == .5f);
    CHECK(std::isfinite(theta.to_vector<float>()[1]));
    CHECK(theta.to_vector<float>()[1] < .5f);
  });
}

TEST_CASE("a large parameter takes the same step, bit for bit, on one thread and on several") {
  int before = num_threads();
  std::vector<Arrays> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    results.push_back(arrays(400001, Dtype::f32));
    Arrays& x = results.back();
    optim::adaptive_update(x.g, x.m, x.v, x.theta, kStep);
  }
  set_num_threads(before);
  for (const Arrays& x : results) {
    CHECK(test::same_bits(x.theta, results[0].theta));
    CHECK(test::same_bits(x.m, results[0].m));
    CHECK(test::same_bits(x.v, results[0].v));
  }
}
