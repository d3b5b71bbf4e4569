#include "linnet/ops/feature_maps_kernels.h"

#include <cmath>

#include "linnet/core/cuda_stream.h"

namespace linnet::cuda {
namespace {

template <class T>
constexpr T kRoot2 = T(1.41421356237309505);

/// Where the products of element i with those from i on begin.
LINNET_FN inline int64_t first_product(int64_t i, int64_t dim) { return i * dim - i * (i - 1) / 2; }

template <class T>
void polynomial(int64_t rows, int64_t dim, const T* x, T* y) {
  const int64_t width = dim * (dim + 1) / 2;
  each(rows * dim, [=] __device__(int64_t at) {
    const int64_t row = at / dim, i = at % dim;
    const T one = x[at], scaled = kRoot2<T> * one;
    T* const to = y + row * width + first_product(i, dim);
    to[0] = one * one;
    for (int64_t j = i + 1; j < dim; ++j) to[j - i] = scaled * x[row * dim + j];
  });
}

template <class T>
void polynomial_slope(int64_t rows, int64_t dim, const T* x, const T* dy, T* dx) {
  const int64_t width = dim * (dim + 1) / 2;
  each(rows * dim, [=] __device__(int64_t at) {
    const int64_t row = at / dim, i = at % dim;
    const T *const from = x + row * dim, *const slope = dy + row * width;
    T others = 0;
    for (int64_t j = 0; j < dim; ++j)
      if (j != i) others += from[j] * slope[j < i ? first_product(j, dim) + i - j : first_product(i, dim) + j - i];
    dx[at] = 2 * from[i] * slope[first_product(i, dim)] + kRoot2<T> * others;
  });
}

template <class T>
void fourier(int64_t rows, int64_t m, const T* angles, T* y) {
  const T scale = 1 / std::sqrt(static_cast<T>(m));
  each(rows * m, [=] __device__(int64_t at) {
    const int64_t row = at / m, i = at % m;
    y[row * 2 * m + i] = scale * ::cos(angles[at]);
    y[row * 2 * m + m + i] = scale * ::sin(angles[at]);
  });
}

template <class T>
void fourier_slope(int64_t rows, int64_t m, const T* y, const T* dy, T* dangles) {
  each(rows * m, [=] __device__(int64_t at) {
    const int64_t cosine = at / m * 2 * m + at % m, sine = cosine + m;
    dangles[at] = y[cosine] * dy[sine] - y[sine] * dy[cosine];
  });
}

}  // namespace

extern const FeatureMapF32 feature_maps_f32 = {polynomial<float>, polynomial_slope<float>, fourier<float>,
                                               fourier_slope<float>};
extern const FeatureMapF64 feature_maps_f64 = {polynomial<double>, polynomial_slope<double>, fourier<double>,
                                               fourier_slope<double>};

}  // namespace linnet::cuda
