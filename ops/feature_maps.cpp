#include "linnet/ops/feature_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/core/threads.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/feature_maps_kernels.h"
#include "linnet/ops/linear.h"
#include "linnet/ops/reduce.h"

namespace linnet {
namespace {

void check_rows(const char* op, const Tensor& x) {
  LINNET_CHECK(x.rank() >= 1, op, ": input () has no last axis");
  LINNET_CHECK(is_float(x.dtype()), op, ": input is ", x.dtype(), ", f32 or f64 wanted");
}

void check_projections(const char* op, const Tensor& x, const Tensor& w) {
  check_rows(op, x);
  LINNET_CHECK(w.rank() == 2 && w.size(0) >= 1 && w.size(1) == x.size(-1), op, ": projections ", w.shape(),
               " are not (m, D) with m >= 1 and D = ", x.size(-1), " for an input ", x.shape());
  check_same_dtype(op, x, w);
  check_same_device(op, x, w);
}

int64_t row_count(const Tensor& x) { return x.shape().first(x.rank() - 1).numel(); }

/// Calls row(r) for every row, each of `width` results.
template <class Row>
void each_row(int64_t rows, double nanoseconds, int64_t width, Row row) {
  parallel_for(rows, nanoseconds * static_cast<double>(width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) row(r);
  });
}

template <class T>
constexpr T kRoot2 = T(1.41421356237309505);

template <class T>
void polynomial_row(int64_t dim, const T* x, T* y) {
  for (int64_t i = 0; i < dim; ++i) {
    const T scaled = kRoot2<T> * x[i];
    *y++ = x[i] * x[i];
    for (int64_t j = i + 1; j < dim; ++j) *y++ = scaled * x[j];
  }
}

/// dx += the gradient for dy; dx begins at 0.
template <class T>
void polynomial_slope_row(int64_t dim, const T* x, const T* dy, T* dx) {
  for (int64_t i = 0; i < dim; ++i) {
    T others = 0;
    dx[i] += 2 * x[i] * *dy++;
    for (int64_t j = i + 1; j < dim; ++j, ++dy) {
      others += x[j] * *dy;
      dx[j] += kRoot2<T> * x[i] * *dy;
    }
    dx[i] += kRoot2<T> * others;
  }
}

template <class T>
void fourier_row(int64_t m, const T* angles, T* y) {
  const T scale = 1 / std::sqrt(static_cast<T>(m));
  for (int64_t i = 0; i < m; ++i) {
    y[i] = scale * std::cos(angles[i]);
    y[m + i] = scale * std::sin(angles[i]);
  }
}

template <class T>
void fourier_slope_row(int64_t m, const T* y, const T* dy, T* dangles) {
  for (int64_t i = 0; i < m; ++i) dangles[i] = y[i] * dy[m + i] - y[m + i] * dy[i];
}

template <class T>
constexpr FeatureMapKernels<T> on_cpu = {
    [](int64_t rows, int64_t dim, const T* x, T* y) {
      const int64_t width = dim * (dim + 1) / 2;
      each_row(rows, 0.5, width, [=](int64_t r) { polynomial_row(dim, x + r * dim, y + r * width); });
    },
    [](int64_t rows, int64_t dim, const T* x, const T* dy, T* dx) {
      const int64_t width = dim * (dim + 1) / 2;
      each_row(rows, 1, width,
               [=](int64_t r) { polynomial_slope_row(dim, x + r * dim, dy + r * width, dx + r * dim); });
    },
    [](int64_t rows, int64_t m, const T* angles, T* y) {
      each_row(rows, 20, m, [=](int64_t r) { fourier_row(m, angles + r * m, y + r * 2 * m); });
    },
    [](int64_t rows, int64_t m, const T* y, const T* dy, T* dangles) {
      each_row(rows, 1, m, [=](int64_t r) { fourier_slope_row(m, y + r * 2 * m, dy + r * 2 * m, dangles + r * m); });
    }};

constexpr FloatInstances<FeatureMapKernels> kernels = {
    {.plain = &on_cpu<float>, .portable = nullptr, .cuda = &cuda::feature_maps_f32},
    {.plain = &on_cpu<double>, .portable = nullptr, .cuda = &cuda::feature_maps_f64}};

double dot(int64_t n, const double* a, const double* b) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Makes row r orthogonal to rows first .. r-1, which have length 1, and gives it length 1. Twice is enough: what the
/// first pass leaves by rounding, the second takes.
void orthogonalise(int64_t first, int64_t r, int64_t dim, double* rows) {
  double* row = rows + r * dim;
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t i = first; i < r; ++i) {
      const double along = dot(dim, row, rows + i * dim);
      for (int64_t d = 0; d < dim; ++d) row[d] -= along * rows[i * dim + d];
    }
    const double length = std::sqrt(dot(dim, row, row));
    for (int64_t d = 0; d < dim; ++d) row[d] /= length;
  }
}

}  // namespace

Variable squared_relu(const Variable& x) {
  check_defined("squared_relu", x);
  LINNET_CHECK(is_float(x.dtype()), "squared_relu: input is ", x.dtype(), ", f32 or f64 wanted");
  return square(relu(x));
}

Variable polynomial_features(const Variable& xv) {
  const char* op = "polynomial_features";
  check_defined(op, xv);
  const Tensor& x = xv.value();
  check_rows(op, x);
  const int64_t rows = row_count(x), dim = x.size(-1), width = dim * (dim + 1) / 2;
  Tensor y = Tensor::empty(x.shape().with(-1, width), x.dtype(), x.device());
  with_float(op, x.dtype(),
             [&]<class T>() { kernels.of<T>(x.device()).polynomial(rows, dim, x.data<T>(), y.mutable_data<T>()); });
  return record("polynomial_features", y, {xv}, keep(x), [=](const Tensor& dy, const Tensor& kept) -> Gradients {
    Tensor dx = zeros_like(kept);
    with_float("polynomial_features", kept.dtype(), [&]<class T>() {
      kernels.of<T>(kept.device()).polynomial_slope(rows, dim, kept.data<T>(), dy.data<T>(), dx.mutable_data<T>());
    });
    return {dx};
  });
}

Tensor orthogonal_features(int64_t m, int64_t dim, Generator& generator, Dtype dtype) {
  const char* op = "orthogonal_features";
  LINNET_CHECK(m >= 1 && dim >= 0, op, ": m ", m, " and D ", dim, " given, m >= 1 and D >= 0 wanted");
  LINNET_CHECK(is_float(dtype), op, ": dtype ", dtype, " given, f32 or f64 wanted");
  Tensor w = generator.normal({m, dim}, 0, 1, Dtype::f64, Device::cpu);
  const Tensor lengths = generator.normal({m, dim}, 0, 1, Dtype::f64, Device::cpu);
  double* rows = w.mutable_data<double>();
  const double* drawn = lengths.data<double>();
  for (int64_t first = 0; first < m; first += std::max<int64_t>(1, dim)) {
    const int64_t end = std::min(m, first + dim);
    for (int64_t r = first; r < end; ++r) orthogonalise(first, r, dim, rows);
    for (int64_t r = first; r < end; ++r) {
      const double length = std::sqrt(dot(dim, drawn + r * dim, drawn + r * dim));
      for (int64_t d = 0; d < dim; ++d) rows[r * dim + d] *= length;
    }
  }
  return w.to(dtype).to(default_device());
}

Variable fourier_features(const Variable& x, const Tensor& w) {
  const char* op = "fourier_features";
  check_defined(op, x, w);
  check_projections(op, x.value(), w);
  const Variable angles = linear(x, w);
  const Tensor& angle = angles.value();
  const int64_t rows = row_count(angle), m = w.size(0);
  Tensor y = Tensor::empty(angle.shape().with(-1, 2 * m), angle.dtype(), angle.device());
  with_float(op, angle.dtype(),
             [&]<class T>() { kernels.of<T>(angle.device()).fourier(rows, m, angle.data<T>(), y.mutable_data<T>()); });
  return record("fourier_features", y, {angles}, keep(y), [=](const Tensor& dy, const Tensor& kept) -> Gradients {
    Tensor grad = Tensor::empty(kept.shape().with(-1, m), kept.dtype(), kept.device());
    with_float("fourier_features", kept.dtype(), [&]<class T>() {
      kernels.of<T>(kept.device()).fourier_slope(rows, m, kept.data<T>(), dy.data<T>(), grad.mutable_data<T>());
    });
    return {grad};
  });
}

Variable favor_features(const Variable& x, const Tensor& w, const FavorOptions& options) {
  const char* op = "favor_features";
  check_defined(op, x, w);
  check_projections(op, x.value(), w);
  const Variable exponents = linear(x, w);
  const double log_scale = 0.5 * std::log(static_cast<double>(w.size(0)));
  // |x|^2 / 2 cancels in exponents less their maximum.
  if (options.of_queries) return exp(exponents - max(exponents, {-1}, true) - log_scale);
  const double most = x.dtype() == Dtype::f32 ? 60 : 500;
  const Variable shifted = exponents - sum(square(x), {-1}, true) * 0.5;
  return exp(clamp(shifted, -std::numeric_limits<double>::infinity(), most) - log_scale);
}

}  // namespace linnet
