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

void update(Arrays& x, const AdaptiveStep<double>& step) {
  optim::Updates updates;
  updates.adaptive(x.g, x.m, x.v, x.theta, step);
  updates.run();
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
          update(x, step);
          Arrays y = arrays(n, dtype);
          optim::Updates updates;
          updates.descent(y.g, y.m, y.theta, {.9, .1, .99, .05, adaptive});
          updates.run();
          updates.descent(y.g, {}, y.theta, {0, .1, .99, .05, false});
          updates.run();
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

TEST_CASE("many parameters of both dtypes, collected, take the steps that each takes alone on a CPU") {
  const std::vector<int64_t> sizes = {0, 1, 33, 4096, 0, 4097, 70001, 5, 0};
  std::vector<Arrays> all, alone, downhill, downhill_alone;
  optim::Updates updates;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dtype dtype = i % 3 == 2 ? Dtype::f64 : Dtype::f32;
    const auto on_cpu = [](const Arrays& x) {
      const auto host = [](const Tensor& t) { return t.to(Device::cpu).clone(); };
      return Arrays{host(x.g), host(x.m), host(x.v), host(x.theta)};
    };
    AdaptiveStep<double> step = kStep;
    step.rate = 0.01 * static_cast<double>(i + 1);
    step.adaptive = i % 2;
    const DescentStep<double> down = {.9, .1, .99, step.rate, i % 2 == 1};
    Arrays x = arrays(sizes[i], dtype), y = arrays(sizes[i], dtype), x_alone = on_cpu(x), y_alone = on_cpu(y);
    if (i == 5) y.m = y_alone.m = Tensor();
    updates.adaptive(x.g, x.m, x.v, x.theta, step);
    updates.descent(y.g, y.m, y.theta, down);
    update(x_alone, step);
    optim::Updates one;
    one.descent(y_alone.g, y_alone.m, y_alone.theta, down);
    one.run();
    all.push_back(x), alone.push_back(x_alone), downhill.push_back(y), downhill_alone.push_back(y_alone);
  }
  updates.run();
  for (size_t i = 0; i < sizes.size(); ++i) {
    INFO(i);
    const double tolerance = all[i].theta.dtype() == Dtype::f32 ? 1e-6 : 1e-14;
    CHECK(test::deviation(all[i].m, alone[i].m) <= tolerance);
    CHECK(test::deviation(all[i].v, alone[i].v) <= tolerance);
    CHECK(test::deviation(all[i].theta, alone[i].theta) <= tolerance);
    CHECK(test::deviation(downhill[i].theta, downhill_alone[i].theta) <= tolerance);
    if (i != 5) CHECK(test::deviation(downhill[i].m, downhill_alone[i].m) <= tolerance);
  }
}

TEST_CASE("an element whose denominator is 0 only shrinks, at every level") {
  for_each_level([] {
    Arrays x = {Tensor::from<float>({0, 1}, {2}), Tensor::zeros({2}), Tensor::zeros({2}), Tensor::full({2}, 1)};
    AdaptiveStep<double> step = kStep;
    step.eps = step.decay_gradient = 0;
    step.shrink = .5;
    update(x, step);
    CHECK(x.theta.to_vector<float>()[0] == .5f);
    CHECK(std::isfinite(x.theta.to_vector<float>()[1]));
    CHECK(x.theta.to_vector<float>()[1] < .5f);
  });
}

TEST_CASE("a large parameter takes the same step, bit for bit, on one thread and on several") {
  int before = num_threads();
  std::vector<Arrays> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    results.push_back(arrays(400001, Dtype::f32));
    update(results.back(), kStep);
  }
  set_num_threads(before);
  for (const Arrays& x : results) {
    CHECK(test::same_bits(x.theta, results[0].theta));
    CHECK(test::same_bits(x.m, results[0].m));
    CHECK(test::same_bits(x.v, results[0].v));
  }
}
