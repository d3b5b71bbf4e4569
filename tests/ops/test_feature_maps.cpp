#include "linnet/ops/feature_maps.h"

#include <functional>

#include "linnet/core/compute.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"
#include "support/linear_attention.h"
#include "support/modules.h"

using namespace linnet;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, double std = 1, Dtype dtype = Dtype::f64) {
  return compute::scale(test::normal(shape, seed, dtype), std);
}

Tensor projections(int64_t m, int64_t dim, uint64_t seed, Dtype dtype = Dtype::f64) {
  Generator generator{seed, 0, 0};
  return orthogonal_features(m, dim, generator, dtype);
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// All products of rows: (rows of a) x (rows of b).
Tensor products(const Tensor& a, const Tensor& b) { return compute::matmul(a, b, false, true); }

Tensor each(const Tensor& x, const std::function<double(double)>& f) {
  std::vector<double> values = x.to_vector<double>();
  for (double& value : values) value = f(value);
  return Tensor::from(values, x.shape());
}

/// The slope of log(root mean square error of the estimated kernel) over log(m), m = 64, 256, .., 16384.
double error_slope(const Tensor& x, const Tensor& y, const Tensor& exact,
                   const std::function<Tensor(const Tensor&, const Tensor&)>& features) {
  std::vector<double> sizes, errors;
  for (int64_t m = 64; m <= 16384; m *= 4) {
    double sum = 0;
    constexpr int kDraws = 6;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      const Tensor w = projections(m, x.size(1), 100 * static_cast<uint64_t>(m) + seed);
      sum += compute::sum_of_squares(compute::sub(products(features(x, w), features(y, w)), exact));
    }
    sizes.push_back(std::log(static_cast<double>(m)));
    errors.push_back(0.5 * std::log(sum / static_cast<double>(kDraws * exact.numel())));
  }
  const double n = static_cast<double>(sizes.size());
  double x_mean = 0, y_mean = 0, xy = 0, xx = 0;
  for (size_t i = 0; i < sizes.size(); ++i) x_mean += sizes[i] / n, y_mean += errors[i] / n;
  for (size_t i = 0; i < sizes.size(); ++i) {
    xy += (sizes[i] - x_mean) * (errors[i] - y_mean);
    xx += (sizes[i] - x_mean) * (sizes[i] - x_mean);
  }
  return xy / xx;
}

}  // namespace

TEST_CASE("polynomial features: their products are the squared products, and attention with them the quadratic form") {
  test::for_each_level([](const char* level) {
    CAPTURE(level);
    for (const int64_t dim : {1, 3, 17}) {
      const Tensor x = draw({7, dim}, 1), y = draw({5, dim}, 2);
      CHECK(polynomial_features(x).shape() == Shape{7, dim * (dim + 1) / 2});
      CHECK(test::deviation(products(polynomial_features(x).value(), polynomial_features(y).value()),
                            each(products(x, y), [](double p) { return p * p; })) < 1e-12);
    }
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const bool causal : {true, false}) {
        const Tensor q = draw({2, 33, 2, 5}, 1, 1, dtype), k = draw({2, 33, 2, 5}, 2, 1, dtype),
                     v = draw({2, 33, 2, 3}, 3, 1, dtype);
        ReferenceMasks masks;
        masks.causal = causal;
        const Tensor wanted = quadratic_attention(
            q, k, v, masks, [](const double* a, const double* b, int64_t n) { return dot(a, b, n) * dot(a, b, n); });
        const Tensor out = linear_attention(polynomial_features(q), polynomial_features(k), v,
                                            {.feature_map = FeatureMap::identity, .causal = causal})
                               .value();
        CHECK(test::deviation(out, wanted) < (dtype == Dtype::f32 ? 1e-4 : 1e-10));
      }
  });
}

TEST_CASE("gradients of the feature maps") {
  const Tensor w = projections(5, 3, 1);
  for (const Shape& shape : {Shape{3}, Shape{2, 2, 3}, Shape{0, 3}, Shape{67, 3}}) {
    const Tensor x = draw(shape, 4);
    check_gradients("polynomial_features", [](const auto& v) { return polynomial_features(v[0]); }, {x});
    check_gradients("fourier_features", [&](const auto& v) { return fourier_features(v[0], w); }, {x});
    check_gradients("exp", [&](const auto& v) { return favor_features(v[0], w); }, {x});
    check_gradients("exp", [&](const auto& v) { return favor_features(v[0], w, {.of_queries = true}); }, {x});
    check_gradients("square", [](const auto& v) { return squared_relu(v[0]); }, {test::grid(shape)});
  }
  check_gradients("polynomial_features", [](const auto& v) { return polynomial_features(v[0]); }, {draw({4, 0}, 1)});
  check_gradients("polynomial_features", [](const auto& v) { return polynomial_features(v[0]); }, {draw({9, 31}, 1)});
}

TEST_CASE("squared relu is max(x, 0) squared") {
  const Tensor x = Tensor::from<float>({-2, -0.0f, 0, 0.5f, 3, NAN}, {6});
  const auto y = squared_relu(x).value().to_vector<float>();
  CHECK(std::vector<float>(y.begin(), y.begin() + 5) == std::vector<float>{0, 0, 0, 0.25f, 9});
  CHECK(std::isnan(y[5]));
}

TEST_CASE("orthogonal features: rows of a block are orthogonal, their lengths and elements those of normal rows") {
  const int64_t dim = 8, m = 4004;  // the last block is not full
  const Tensor w = projections(m, dim, 3).to(Device::cpu);
  const double* rows = w.data<double>();
  double worst = 0, fourth = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = i / dim * dim; j < i; ++j)
      worst = std::max(worst, std::abs(dot(rows + i * dim, rows + j * dim, dim)));
  CHECK(worst < 1e-12);
  for (int64_t i = 0; i < m * dim; ++i) fourth += rows[i] * rows[i] * rows[i] * rows[i];
  CHECK(compute::sum_of_squares(w) / static_cast<double>(m * dim) == doctest::Approx(1).epsilon(0.03));
  CHECK(fourth / static_cast<double>(m * dim) == doctest::Approx(3).epsilon(0.06));
  CHECK(test::same_bits(projections(m, dim, 3), w));
  CHECK(!test::same_bits(projections(m, dim, 4), w));
  Generator generator{3, 0, 0};
  const Tensor first = orthogonal_features(4, 2, generator), second = orthogonal_features(4, 2, generator);
  CHECK(first.dtype() == Dtype::f32);
  CHECK(!test::same_bits(first, second));
  CHECK(orthogonal_features(3, 0, generator).shape() == Shape{3, 0});
}

TEST_CASE("random features: the error of the kernel falls as one over the root of their number") {
  const int64_t dim = 8;
  const Tensor x = draw({12, dim}, 1, 0.4), y = draw({12, dim}, 2, 0.4);
  const std::vector<double> of_x = x.to_vector<double>(), of_y = y.to_vector<double>();
  const Tensor softmax_kernel = each(products(x, y), [](double p) { return std::exp(p); });
  std::vector<double> rbf;
  for (int64_t i = 0; i < 12; ++i)
    for (int64_t j = 0; j < 12; ++j) {
      double distance = 0;
      for (int64_t d = 0; d < dim; ++d) {
        const double gap = of_x[static_cast<size_t>(i * dim + d)] - of_y[static_cast<size_t>(j * dim + d)];
        distance += gap * gap;
      }
      rbf.push_back(std::exp(-distance / 2));
    }
  const double fourier = error_slope(x, y, Tensor::from(rbf, {12, 12}), [](const Tensor& rows, const Tensor& w) {
    return fourier_features(rows, w).value();
  });
  const double favor = error_slope(x, y, softmax_kernel,
                                   [](const Tensor& rows, const Tensor& w) { return favor_features(rows, w).value(); });
  CHECK(std::abs(fourier + 0.5) <= 0.1);
  CHECK(std::abs(favor + 0.5) <= 0.1);
}

TEST_CASE("SA14: 10,000 features of one dimension estimate exp(q k) within four percent") {
  const Tensor half = Tensor::full({1, 1}, 0.5, Dtype::f64);
  const double estimate = compute::sum_of_squares(favor_features(half, projections(10000, 1, 1)).value());
  CHECK(std::abs(estimate / 1.284025 - 1) <= 0.04);
}

TEST_CASE("FAVOR+ in linear attention comes near softmax attention, and its queries may be stabilised") {
  const int64_t dim = 4;
  const Tensor q = draw({1, 40, 2, dim}, 1, 0.5), k = draw({1, 40, 2, dim}, 2, 0.5), v = draw({1, 40, 2, 4}, 3);
  const Tensor w = projections(16384, dim, 1), same = Tensor::full(q.shape(), 1, Dtype::f64);
  for (const bool causal : {true, false}) {
    ReferenceMasks masks;
    masks.causal = causal;
    const Tensor wanted = quadratic_attention(
        q, k, v, masks, [](const double* a, const double* b, int64_t n) { return std::exp(dot(a, b, n)); });
    const LinearAttentionOptions options{.feature_map = FeatureMap::identity, .causal = causal};
    const Variable keys = favor_features(k, w);
    const Tensor plain = linear_attention(favor_features(q, w), keys, v, options).value(),
                 stable = linear_attention(favor_features(q, w, {.of_queries = true}), keys, v, options).value();
    CHECK(test::deviation(plain, wanted) < 0.1);
    CHECK(test::deviation(linear_attention(same, same, v, options).value(), wanted) > 0.2);  // the weights do matter
    CHECK(test::deviation(stable, plain) < 1e-12);
  }
}

TEST_CASE("FAVOR+ stays finite, its queries do not vanish, and a row's features are its own") {
  const int64_t dim = 256;
  const Tensor w = projections(64, dim, 1, Dtype::f32);
  const Tensor along = w.clone();  // the largest exponent there is: |w|^2 / 2
  for (const double factor : {1.0, 30.0, 1e10}) {
    const Tensor x = compute::scale(along, factor);
    for (const bool of_queries : {false, true}) {
      const Tensor y = favor_features(x, w, {.of_queries = of_queries}).value();
      CHECK(compute::all_finite(y));
      if (of_queries)
        for (float top :
             compute::reduce(compute::Reduction::max, y, std::vector<int64_t>{-1}, false).to_vector<float>())
          CHECK(top == doctest::Approx(0.125));
      CHECK(test::same_bits(favor_features(x.slice(3, 5), w, {.of_queries = of_queries}).value(), y.slice(3, 5)));
    }
  }
}

TEST_CASE("errors of the feature maps") {
  const Tensor x = Tensor::zeros({2, 3}), whole = Tensor::zeros({2, 3}, Dtype::i32);
  CHECK(test::message_of([&] {
          fourier_features(x, Tensor::zeros({5, 4}));
        }) == "fourier_features: projections (5, 4) are not (m, D) with m >= 1 and D = 3 for an input (2, 3)");
  CHECK(test::message_of([&] {
          favor_features(x, Tensor::zeros({0, 3}));
        }) == "favor_features: projections (0, 3) are not (m, D) with m >= 1 and D = 3 for an input (2, 3)");
  CHECK(test::message_of([&] { polynomial_features(Tensor::zeros({})); }) ==
        "polynomial_features: input () has no last axis");
  CHECK(test::message_of([&] { squared_relu(whole); }) == "squared_relu: input is i32, f32 or f64 wanted");
  CHECK_THROWS_WITH_AS(favor_features(x, Tensor::zeros({5, 3}, Dtype::f64)), doctest::Contains("favor_features: "),
                       Error);
  Generator generator{1, 0, 0};
  CHECK(test::message_of([&] { orthogonal_features(0, 3, generator); }) ==
        "orthogonal_features: m 0 and D 3 given, m >= 1 and D >= 0 wanted");
  CHECK(generator.offset == 0);
}
