#include "linnet/ops/batch_norm.h"

#include <cmath>

#include "linnet/core/compute.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Statistics {
  Tensor mean, variance;
  Statistics(int64_t dim, Dtype dtype)
      : mean(positive_grid({dim}, 0.003, dtype)), variance(positive_grid({dim}, 0.007, dtype)) {}
  operator RunningStatistics() { return {mean, variance}; }
};

struct Result {
  Tensor y, dx, dweight, dbias;
};

/// Forward and backward on a tape that trains or does not.
Result run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy, RunningStatistics running,
           bool trains, const BatchNormOptions& options = {}) {
  const Variable xv = Variable::leaf(x), w = Variable::leaf(weight), b = Variable::leaf(bias);
  Tape tape({.training = trains});
  const Variable y = batch_norm(xv, w, b, running, options);
  tape.backward(y, dy);
  return {y.value(), xv.grad(), w.grad(), b.grad()};
}

/// The formulas, channel by channel, in double; `counts` says which rows take part.
Result reference(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy, Statistics& running,
                 bool trains, const std::vector<bool>& counts, double momentum = 0.9) {
  const int64_t dim = x.size(-1), rows = dim ? x.numel() / dim : 0;
  const auto xs = x.to_vector<double>(), w = weight.to_vector<double>(), b = bias.to_vector<double>(),
             d = dy.to_vector<double>();
  std::vector<double> y(xs.size()), dx(xs.size()), dw(w.size()), db(w.size());
  std::vector<double> means = running.mean.to_vector<double>(), variances = running.variance.to_vector<double>();
  for (int64_t c = 0; c < dim; ++c) {
    double &running_mean = means[static_cast<size_t>(c)], &running_variance = variances[static_cast<size_t>(c)];
    double n = 0, mean = 0, variance = 0, mean_h = 0, mean_hx = 0;
    for (int64_t r = 0; r < rows; ++r) n += counts[r];
    const bool of_batch = trains && n > 0;
    for (int64_t r = 0; r < rows; ++r) mean += counts[r] ? xs[r * dim + c] / n : 0;
    for (int64_t r = 0; r < rows; ++r)
      variance += counts[r] ? (xs[r * dim + c] - mean) * (xs[r * dim + c] - mean) / n : 0;
    if (of_batch) {
      running_mean = momentum * running_mean + (1 - momentum) * mean;
      running_variance = momentum * running_variance + (1 - momentum) * variance;
    } else {
      mean = running_mean, variance = running_variance;
    }
    const double rstd = 1 / std::sqrt(variance + 1e-5);
    for (int64_t r = 0; r < rows; ++r) {
      if (!counts[r]) continue;
      const double xhat = (xs[r * dim + c] - mean) * rstd, dr = d[r * dim + c];
      y[r * dim + c] = xhat * w[c] + b[c];
      dw[c] += dr * xhat, db[c] += dr;
      mean_h += w[c] * dr / n, mean_hx += w[c] * dr * xhat / n;
    }
    for (int64_t r = 0; r < rows; ++r) {
      if (!counts[r]) continue;
      const double xhat = (xs[r * dim + c] - mean) * rstd, h = w[c] * d[r * dim + c];
      dx[r * dim + c] = rstd * (of_batch ? h - mean_h - xhat * mean_hx : h);
    }
  }
  running.mean.copy_from(Tensor::from(means, {dim}));
  running.variance.copy_from(Tensor::from(variances, {dim}));
  return {Tensor::from(y, x.shape()), Tensor::from(dx, x.shape()), Tensor::from(dw, weight.shape()),
          Tensor::from(db, weight.shape())};
}

std::vector<bool> counted(const std::vector<int32_t>& lengths, int64_t time) {
  std::vector<bool> counts;
  for (const int32_t length : lengths)
    for (int64_t t = 0; t < time; ++t) counts.push_back(t < length);
  return counts;
}

}  // namespace

TEST_CASE("batch_norm: gradients, training and not, with and without weight, bias and mask") {
  const KeyMask keys = KeyMask::lengths({3, 0, 1});
  for (const bool trains : {true, false}) {
    for (Shape shape :
         {Shape{3, 3, 4}, Shape{7, 2}, Shape{1, 3}, Shape{0, 4}, Shape{3, 0}, Shape{2, 0, 3}, Shape{37, 129}}) {
      for (int parts = 0; parts < 4; ++parts) {
        INFO(shape.str(), trains ? " trains" : "", parts & 1 ? " weight" : "", parts & 2 ? " bias" : "");
        std::vector<Tensor> inputs = {grid(shape)};
        if (parts & 1) inputs.push_back(grid(shape.last(1), 0.005));
        if (parts & 2) inputs.push_back(grid(shape.last(1), 0.009));
        check_gradients("batch_norm",
                        [&](const std::vector<Variable>& in) {
                          Statistics running(shape.back(), Dtype::f64);
                          return batch_norm(in[0], parts & 1 ? in[1] : Variable(), parts & 2 ? in.back() : Variable(),
                                            running, {.keys = shape == Shape{3, 3, 4} ? &keys : nullptr});
                        },
                        inputs, {.full_below = 1024, .training = trains});
      }
    }
  }
}

TEST_CASE("batch_norm: agrees with the formulas at every level, running statistics included") {
  for_each_level([](const char* level) {
    for (const bool trains : {true, false}) {
      for (Shape shape : {Shape{5, 3}, Shape{203, 67}, Shape{3, 50, 17}}) {
        for (const bool masked : {false, true}) {
          if (masked && shape.rank() == 2) continue;
          for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
            INFO(level, " ", shape.str(), " ", name(dtype), trains ? " trains" : "", masked ? " masked" : "");
            const std::vector<int32_t> lengths{50, 0, 31};
            const KeyMask keys = KeyMask::lengths(lengths);
            const int64_t dim = shape.back();
            const Tensor x = grid(shape), w = grid({dim}, 0.005), b = grid({dim}, 0.009), dy = grid(shape, 0.001);
            Statistics running(dim, dtype), wanted(dim, Dtype::f64);
            const Result got = run(x.to(dtype), w.to(dtype), b.to(dtype), dy.to(dtype), running, trains,
                                   {.keys = masked ? &keys : nullptr});
            const auto counts = masked ? counted(lengths, 50) : std::vector<bool>(x.numel() / dim, true);
            const Result want = reference(x, w, b, dy, wanted, trains, counts);
            const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
            CHECK(deviation(got.y, want.y) <= tolerance);
            CHECK(deviation(got.dx, want.dx) <= tolerance);
            CHECK(deviation(got.dweight, want.dweight) <= tolerance);
            CHECK(deviation(got.dbias, want.dbias) <= tolerance);
            CHECK(deviation(running.mean, wanted.mean) <= tolerance);
            CHECK(deviation(running.variance, wanted.variance) <= tolerance);
          }
        }
      }
    }
  });
}

TEST_CASE("batch_norm: padding is not read, and equals a batch without it") {
  const Tensor x = grid({2, 4, 3}), dy = grid({2, 4, 3}, 0.001), w = grid({3}, 0.005), b = grid({3}, 0.009);
  const KeyMask keys = KeyMask::lengths({4, 1});
  Tensor padded = x.clone(), seed = dy.clone();
  padded.slice(1, 2).reshape({4, 3}).slice(1, 4).fill(std::nan(""));
  seed.slice(1, 2).reshape({4, 3}).slice(1, 4).fill(std::nan(""));
  const auto first_five = [](const Tensor& all) { return all.reshape({8, 3}).slice(0, 5).clone(); };
  for (const bool trains : {true, false}) {
    Statistics running(3, Dtype::f64), alone(3, Dtype::f64);
    const Result got = run(padded, w, b, seed, running, trains, {.keys = &keys});
    const Result want = run(first_five(x), w, b, first_five(dy), alone, trains);
    CHECK(deviation(first_five(got.y), want.y) < 1e-14);
    CHECK(deviation(first_five(got.dx), want.dx) < 1e-14);
    CHECK(deviation(got.dweight, want.dweight) < 1e-14);
    CHECK(deviation(running.variance, alone.variance) < 1e-14);
    for (const Tensor& each : {got.y, got.dx}) CHECK(compute::sum_of_squares(each.reshape({8, 3}).slice(5, 8)) == 0);
  }
}

TEST_CASE("batch_norm: without a tape, under a pause and on one that does not train, the running statistics stay") {
  const Tensor x = grid({6, 3});
  Statistics running(3, Dtype::f64);
  const Statistics before(3, Dtype::f64);
  const Tensor y = batch_norm(x, {}, {}, running).value();
  Tape tape;
  {
    Tape::Pause pause;
    CHECK(same_bits(batch_norm(x, {}, {}, running).value(), y));
  }
  {
    Tape fixed({.training = false});
    CHECK(same_bits(batch_norm(x, {}, {}, running).value(), y));
  }
  CHECK(same_bits(running.mean, before.mean));
  CHECK(same_bits(running.variance, before.variance));
  CHECK(deviation(batch_norm(x, {}, {}, running).value(), y) > 0.1);
  CHECK(deviation(running.mean, before.mean) > 0.01);
}

TEST_CASE("batch_norm: momentum says how much stays, and no rows change nothing") {
  const Tensor x = Tensor::from<double>({1, 3, 10, 30}, {2, 2});
  for (const double momentum : {0.0, 0.75, 1.0}) {
    Tensor mean = Tensor::from<double>({4, 8}, {2}), variance = Tensor::from<double>({1, 2}, {2});
    Tape tape;
    batch_norm(x, {}, {}, {mean, variance}, {.momentum = momentum});
    CHECK(mean.to_vector<double>()[0] == doctest::Approx(4 * momentum + 5.5 * (1 - momentum)));
    CHECK(variance.to_vector<double>()[1] == doctest::Approx(2 * momentum + 182.25 * (1 - momentum)));
    const Tensor kept = mean.clone();
    batch_norm(Tensor::zeros({0, 2}, Dtype::f64), {}, {}, {mean, variance}, {.momentum = momentum});
    const KeyMask none = KeyMask::lengths({0});
    const Tensor y =
        batch_norm(x.reshape({1, 2, 2}), {}, {}, {mean, variance}, {.momentum = momentum, .keys = &none}).value();
    CHECK(compute::sum_of_squares(y) == 0);
    CHECK(same_bits(mean, kept));
  }
}

TEST_CASE("batch_norm: a constant channel gives its bias and gradient 0, a large mean costs nothing") {
  for_each_level([](const char* level) {
    CAPTURE(level);
    for (const int64_t n : {1, 5, 300}) {
      Statistics running(2, Dtype::f32);
      const Result r = run(Tensor::full({n, 2}, 3.3), Tensor::full({2}, 2), Tensor::full({2}, 0.25),
                           grid({n, 2}, 0.001, Dtype::f32), running, true, {.eps = 0});
      for (float y : r.y.to_vector<float>()) CHECK(y == 0.25f);
      for (float d : r.dx.to_vector<float>()) CHECK(d == 0);
    }
    Statistics running(1, Dtype::f32);
    Tape tape;
    const Tensor y =
        batch_norm(Tensor::from<float>({1e6f, 1e6f + 1, 1e6f + 2, 1e6f + 3}, {4, 1}), {}, {}, running).value();
    CHECK(deviation(y, Tensor::from<float>({-1.34163542f, -.44721181f, .44721181f, 1.34163542f}, {4, 1})) < 1e-6);
  });
}

TEST_CASE("batch_norm: errors change nothing") {
  Statistics running(3, Dtype::f32);
  const Statistics before(3, Dtype::f32);
  const Tensor x = Tensor::zeros({2, 4, 3});
  const auto fault = [&](const Tensor& input, const Tensor& weight, const BatchNormOptions& options = {}) {
    Tape tape;
    return message_of([&] { batch_norm(input, weight, {}, running, options); });
  };
  CHECK(fault(x, Tensor::zeros({4})) == "batch_norm: input (2, 4, 3) wants a weight of (3), but it is (4)");
  CHECK(fault(Tensor::zeros({2, 5}), {}) == "batch_norm: input (2, 5) wants a running mean of (5), but it is (3)");
  CHECK(fault(Tensor::zeros({3}), {}) == "batch_norm: input (3) is not (batch, time, dim) or (n, dim)");
  CHECK(fault(x, {}, {.momentum = 1.5}) == "batch_norm: momentum 1.5 is not in 0 .. 1");
  CHECK(fault(x, {}, {.eps = -1}) == "batch_norm: eps -1 given, wanted: finite and not negative");
  const KeyMask keys = KeyMask::lengths({4, 5}), short_keys = KeyMask::lengths({4});
  CHECK(fault(Tensor::zeros({2, 3}), {}, {.keys = &keys}) ==
        "batch_norm: a key mask is for (batch, time, dim), but the input is (2, 3)");
  CHECK(fault(x, {}, {.keys = &keys}) == "batch_norm: key length 5 of sample 1 is above the time 4");
  CHECK(fault(x, {}, {.keys = &short_keys}) == "batch_norm: key mask has 1 lengths for a batch of 2");
  CHECK_THROWS_AS(batch_norm(x.to(Dtype::f64), {}, {}, running), Error);
  CHECK_THROWS_AS(batch_norm(Tensor::zeros({2, 3}, Dtype::i32), {}, {}, running), Error);
  CHECK(same_bits(running.mean, before.mean));
  CHECK(same_bits(running.variance, before.variance));
}
