#include "linnet/ops/softmax.h"

#include <cmath>
#include <limits>

#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor row(const std::vector<float>& values) { return Tensor::from(values, {static_cast<int64_t>(values.size())}); }

/// exp(x) / sum exp(x) over the last axis, in double, of numbers that need no maximum taken away.
Tensor reference(const Tensor& x, bool logarithm) {
  const int64_t n = x.size(-1);
  Tensor y = x.to(Device::cpu).clone();
  double* p = y.mutable_data<double>();
  for (int64_t r = 0; r < x.numel() / std::max<int64_t>(1, n); ++r) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp(p[r * n + i]);
    for (int64_t i = 0; i < n; ++i)
      p[r * n + i] = logarithm ? p[r * n + i] - std::log(sum) : std::exp(p[r * n + i]) / sum;
  }
  return y;
}

Tensor gradient(Variable (*f)(const Variable&, int64_t), const Tensor& x, const Tensor& dy, int64_t axis = -1) {
  const Variable leaf = Variable::leaf(x);
  Tape tape;
  tape.backward(f(leaf, axis), dy);
  return leaf.grad();
}

}  // namespace

TEST_CASE("softmax, log_softmax: gradients over every axis") {
  for (Shape shape : {Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{2, 0, 3}, Shape{3, 1}, Shape{37, 129}})
    for (int64_t axis = -1; axis < shape.rank(); ++axis) {
      INFO(shape.str(), " axis ", axis);
      check_gradients("softmax", [axis](const std::vector<Variable>& in) { return softmax(in[0], axis); },
                      {grid(shape)}, {.full_below = 1024});
      check_gradients("log_softmax", [axis](const std::vector<Variable>& in) { return log_softmax(in[0], axis); },
                      {grid(shape)}, {.full_below = 1024});
    }
}

TEST_CASE("softmax, log_softmax: agree with the formula at every level, over every axis") {
  for_each_level([](const char* level) {
    for (Shape shape : {Shape{1}, Shape{3, 5}, Shape{2, 3, 33}, Shape{37, 129}, Shape{2, 3000}})
      for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
        INFO(level, " ", shape.str(), " ", name(dtype));
        const double tolerance = dtype == Dtype::f32 ? 1e-6 : 1e-14;
        const Tensor x = grid(shape), given = x.to(dtype), dy = grid(shape, 0.001).to(dtype);
        CHECK(deviation(softmax(given).value(), reference(x, false)) <= tolerance);
        CHECK(deviation(log_softmax(given).value(), reference(x, true)) <= tolerance);
        const Tensor dx = gradient(softmax, given, dy), dlog = gradient(log_softmax, given, dy);
        const Level now = linnet::level();
        force_level(Level::plain);
        CHECK(deviation(dx, gradient(softmax, given, dy)) <= 10 * tolerance);
        CHECK(deviation(dlog, gradient(log_softmax, given, dy)) <= 100 * tolerance);
        force_level(now);
        if (shape.rank() < 2) continue;
        const Tensor turned = compute::transpose(given, 0, -1);
        CHECK(same_bits(compute::transpose(softmax(turned, 0).value(), 0, -1), softmax(given).value()));
        CHECK(same_bits(compute::transpose(log_softmax(turned, 0).value(), 0, -1), log_softmax(given).value()));
      }
  });
}

TEST_CASE("softmax, log_softmax: rows of every width that a GPU treats in its own way, and many of them") {
  using Function = Variable (*)(const Variable&, int64_t);
  const auto check = [](const Shape& shape, Dtype dtype, const std::vector<Function>& functions) {
    INFO(shape.str(), " ", name(dtype));
    const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
    const Tensor x = grid(shape, 0.013, dtype), dy = grid(shape, 0.001, dtype);
    const auto host = [](const Tensor& t) { return t.to(Device::cpu); };
    for (Function f : functions) {
      CHECK(deviation(f(x, -1).value(), f(host(x), -1).value()) <= tolerance);
      CHECK(deviation(gradient(f, x, dy), gradient(f, host(x), host(dy))) <= tolerance);
    }
  };
  for (int64_t width : {1, 16, 17, 31, 32, 33, 1024, 1025, 5000})
    for (Dtype dtype : {Dtype::f32, Dtype::f64}) check({3, width}, dtype, {softmax, log_softmax});
  check({66000, 2}, Dtype::f32, {softmax, log_softmax});
  check({33000, 17}, Dtype::f32, {softmax});  // more than a grid has warps
  check({0, 5}, Dtype::f32, {softmax, log_softmax});
}

TEST_CASE("softmax, log_softmax: no NaN from any finite row") {
  constexpr float kMax = std::numeric_limits<float>::max();
  for_each_level([&](const char* level) {
    INFO(level);
    CHECK(softmax(row({1000, 0, -1000})).value().to_vector<float>() == std::vector<float>{1, 0, 0});
    CHECK(log_softmax(row({1000, 0, -1000})).value().to_vector<float>() == std::vector<float>{0, -1000, -2000});
    CHECK(softmax(row({-1e30f, -1e30f})).value().to_vector<float>() == std::vector<float>{.5, .5});
    CHECK(softmax(row({kMax, -kMax, 0})).value().to_vector<float>() == std::vector<float>{1, 0, 0});
  });
}

TEST_CASE("softmax, log_softmax: -infinity is a probability of 0, a row of it is all zeros with gradient 0") {
  for_each_level([](const char* level) {
    INFO(level);
    CHECK(softmax(row({-kInf, 2, -kInf})).value().to_vector<float>() == std::vector<float>{0, 1, 0});
    CHECK(softmax(row({-kInf, -kInf})).value().to_vector<float>() == std::vector<float>{0, 0});
    CHECK(gradient(softmax, row({-kInf, -kInf}), row({1, 2})).to_vector<float>() == std::vector<float>{0, 0});
    CHECK(log_softmax(row({-kInf, 2})).value().to_vector<float>() == std::vector<float>{-kInf, 0});
    CHECK(log_softmax(row({-kInf, -kInf})).value().to_vector<float>() == std::vector<float>{-kInf, -kInf});
    for (float y : softmax(row({NAN, 1, 2})).value().to_vector<float>()) CHECK(std::isnan(y));
    CHECK(std::isnan(softmax(row({NAN, -kInf})).value().to_vector<float>()[0]));
  });
}

TEST_CASE("softmax: rows sum to 1, and the number of threads changes no bit") {
  manual_seed(3);
  const Tensor x = Tensor::normal({2001, 130}, 0, 5);
  const int before = num_threads();
  set_num_threads(1);
  const Tensor y = softmax(x).value();
  const std::vector<float> values = y.to_vector<float>();
  for (size_t r = 0; r < 2001; ++r) {
    double sum = 0;
    for (size_t i = 0; i < 130; ++i) sum += values[r * 130 + i];
    REQUIRE(std::abs(sum - 1) <= 1e-6);
  }
  set_num_threads(3);
  CHECK(same_bits(softmax(x).value(), y));
  set_num_threads(before);
}

TEST_CASE("softmax, log_softmax: errors") {
  CHECK(message_of([] { softmax(Tensor::zeros({2, 3}), 2); }) == "softmax: axis 2 of a tensor with 2 axes");
  CHECK(message_of([] { log_softmax(Tensor::zeros({}), 0); }) == "log_softmax: axis 0 of a tensor with 0 axes");
  CHECK(message_of([] { softmax(Tensor::zeros({2}, Dtype::i32)); }) == "softmax: input is i32, f32 or f64 wanted");
}
