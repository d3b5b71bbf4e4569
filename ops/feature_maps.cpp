#include "linnet/ops/feature_maps.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/core/threads.h"
#include "linnet/ops/elementwise.h"
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
  with_float(op, x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    each_row(rows, 0.5, width, [=](int64_t r) { polynomial_row(dim, from + r * dim, to + r * width); });
  });
  return record("polynomial_features", y, {xv}, keep(x), [=](const Tensor& dy, const Tensor& kept) -> Gradients {
    Tensor dx = zeros_like(kept);
    with_float("polynomial_features", kept.dtype(), [&]<class T>() {
      const T *from = kept.data<T>(), *slope = dy.data<T>();
      T* to = dx.mutable_data<T>();
      each_row(rows, 1, width,
               [=](int64_t r) { polynomial_slope_row(dim, from + r * dim, slope + r * width, to + r * dim); });
    });
    return {dx};
  });
}

Tensor orthogonal_features(int64_t m, int64_t dim, Generator& generator, Dtype dtype) {
  const char* op = "orthogonal_features";
  LINNET_CHECK(m >= 1 && dim >= 0, op, ": m ", m, " and D ", dim, " given, m >= 1 and D >= 0 wanted");
  LINNET_CHECK(is_float(dtype), op, ": dtype ", dtype, " given, f32 or f64 wanted");
  Tensor w = generator.normal({m, dim}, 0, 1, Dtype::f64);
  const Tensor lengths = generator.normal({m, dim}, 0, 1, Dtype::f64);
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
  return w.to(dtype);
}

Variable fourier_features(const Variable& x, const Tensor& w) {
  const char* op = "fourier_features";
  check_defined(op, x, w);
  check_projections(op, x.value(), w);
  const Variable angles = linear(x, w);
  const Tensor& angle = angles.value();
  const int64_t rows = row_count(angle), m = w.size(0);
  Tensor y = Tensor::empty(angle.shape().with(-1, 2 * m), angle.dtype(), angle.device());
  with_float(op, angle.dtype(), [&]<class T>() {
    const T* from = angle.data<T>();
    T* to = y.mutable_data<T>();
    const T scale = 1 / std::sqrt(static_cast<T>(m));
    each_row(rows, 20, m, [=](int64_t r) {
      for (int64_t i = 0; i < m; ++i) {
        to[r * 2 * m + i] = scale * std::cos(from[r * m + i]);
        to[r * 2 * m + m + i] = scale * std::sin(from[r * m + i]);
      }
    });
  });
  return record("fourier_features", y, {angles}, keep(y), [=](const Tensor& dy, const Tensor& kept) -> Gradients {
    Tensor grad = Tensor::empty(kept.shape().with(-1, m), kept.dtype(), kept.device());
    with_float("fourier_features", kept.dtype(), [&]<class T>() {
      const T *f = kept.data<T>(), *g = dy.data<T>();
      T* to = grad.mutable_data<T>();
      each_row(rows, 1, m, [=](int64_t r) {
        const T *cosine = f + r * 2 * m, *sine = cosine + m, *by_cosine = g + r * 2 * m, *by_sine = by_cosine + m;
        for (int64_t i = 0; i < m; ++i) to[r * m + i] = cosine[i] * by_sine[i] - sine[i] * by_cosine[i];
      });
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
