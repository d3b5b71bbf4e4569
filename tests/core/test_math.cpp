// The level's exp, log, tanh, erf against libm in f64, on a grid over every order of magnitude.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/core/dispatch.h"

using namespace linnet;

namespace {

/// Units in the last place of f32 between y and the right value.
double ulps(float y, double right) {
  if (std::isnan(right)) return std::isnan(y) ? 0 : 1e9;
  if (std::abs(right) > std::numeric_limits<float>::max()) return y == static_cast<float>(right) ? 0 : 1e9;
  double scale = std::max(std::abs(right), double(std::numeric_limits<float>::min()));
  int exponent;
  std::frexp(scale, &exponent);
  return std::abs(y - right) / std::ldexp(1.0, exponent - 24);
}

std::vector<float> grid() {
  std::vector<float> x = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-45f, -1e-45f, 3e38f, -3e38f};
  for (uint32_t bits = 0x00800000; bits < 0x7f800000; bits += 40009)
    for (uint32_t sign : {0u, 0x80000000u}) x.push_back(__builtin_bit_cast(float, bits | sign));
  for (int i = -60000; i < 60000; ++i) x.push_back(static_cast<float>(i) * 0.0017f);
  return x;
}

void check(UnaryOp op, double (*right)(double), double tolerance) {
  std::vector<float> x = grid();
  for (Level l : {Level::portable, Level::avx2, Level::avx512}) {
    if (l > best_level()) continue;
    force_level(l);
    auto y = compute::unary(op, Tensor::from(x, {static_cast<int64_t>(x.size())})).to_vector<float>();
    unforce_level();
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (double u = ulps(y[i], right(x[i])); u > worst) worst = u, at = x[i];
    CAPTURE(name(l));
    CAPTURE(at);
    CHECK(worst <= tolerance);
  }
}

}  // namespace

TEST_CASE("exp") {
  check(
      UnaryOp::Exp, [](double x) { return std::exp(x); }, 2);
}
TEST_CASE("log") {
  check(
      UnaryOp::Log, [](double x) { return std::log(x); }, 2);
}
TEST_CASE("tanh") {
  check(
      UnaryOp::Tanh, [](double x) { return std::tanh(x); }, 2.5);
}
TEST_CASE("sigmoid") {
  check(
      UnaryOp::Sigmoid, [](double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 3);
}
TEST_CASE("softplus") {
  check(
      UnaryOp::Softplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, 3);
}
TEST_CASE("erf, through gelu") {
  std::vector<float> x = grid();
  for (float& v : x)
    if (!(std::abs(v) < 6)) v = 1;
  auto y = compute::unary(UnaryOp::Gelu, Tensor::from(x, {static_cast<int64_t>(x.size())})).to_vector<float>();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double right = 0.5 * x[i] * (1 + std::erf(x[i] * std::sqrt(0.5)));
    worst = std::max(worst, std::abs(y[i] - right) / std::max(1.0, std::abs(right)));
  }
  CHECK(worst < 2.5e-7);
}
