// layer_norm for one level: short loops over one row, which stays in the first cache.
#include "linnet/core/math.h"
#include "linnet/ops/layer_norm_kernels.h"
#include "linnet/ops/row_loops.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
void forward(int64_t rows, int64_t width, const T* x0, const T* __restrict weight, const T* __restrict bias, T eps,
             T* y0, T* stats) {
  const T n = static_cast<T>(width);
  for (int64_t r = 0; r < rows; ++r, stats += 3) {
    const T* __restrict x = x0 + r * width;
    T* __restrict y = y0 + r * width;
    const T mean = row_sum<T>(0, width, [x](int64_t i) { return x[i]; }) / n;
    const T rest = row_sum<T>(0, width, [x, mean](int64_t i) { return x[i] - mean; }) / n;
    const T variance = row_sum<T>(0, width,
                                  [x, mean, rest](int64_t i) {
                                    T d = (x[i] - mean) - rest;
                                    return d * d;
                                  }) /
                       n;
    const T total = variance + eps, rstd = total == T(0) ? T(0) : T(1) / sqrt(total);
    if (weight && bias) {
      for (int64_t i = 0; i < width; ++i) y[i] = ((x[i] - mean) - rest) * rstd * weight[i] + bias[i];
    } else if (weight) {
      for (int64_t i = 0; i < width; ++i) y[i] = ((x[i] - mean) - rest) * rstd * weight[i];
    } else if (bias) {
      for (int64_t i = 0; i < width; ++i) y[i] = ((x[i] - mean) - rest) * rstd + bias[i];
    } else {
      for (int64_t i = 0; i < width; ++i) y[i] = ((x[i] - mean) - rest) * rstd;
    }
    stats[0] = mean, stats[1] = rest, stats[2] = rstd;
  }
}

template <class T>
void backward(int64_t rows, int64_t width, const T* dy0, const T* x0, const T* __restrict weight, const T* stats,
              T* dx0, T* __restrict dweight, T* __restrict dbias) {
  const T n = static_cast<T>(width);
  for (int64_t i = 0; i < width && dweight; ++i) dweight[i] = T(0);
  for (int64_t i = 0; i < width && dbias; ++i) dbias[i] = T(0);
  for (int64_t r = 0; r < rows; ++r, stats += 3) {
    const T* __restrict dy = dy0 + r * width, * __restrict x = x0 + r * width;
    const T mean = stats[0], rest = stats[1], rstd = stats[2];
    if (dweight)
      for (int64_t i = 0; i < width; ++i) dweight[i] += dy[i] * (((x[i] - mean) - rest) * rstd);
    if (dbias)
      for (int64_t i = 0; i < width; ++i) dbias[i] += dy[i];
    if (!dx0) continue;
    // h stands in dx first: rounded once, so that a row of one element gives h - mean(h) = 0 whatever is fused later.
    T* __restrict dx = dx0 + r * width;
    if (weight)
      for (int64_t i = 0; i < width; ++i) dx[i] = dy[i] * weight[i];
    else
      for (int64_t i = 0; i < width; ++i) dx[i] = dy[i];
    const T mean_h = row_sum<T>(0, width, [dx](int64_t i) { return dx[i]; }) / n;
    const T mean_hx = row_sum<T>(0, width, [=](int64_t i) { return dx[i] * (((x[i] - mean) - rest) * rstd); }) / n;
    for (int64_t i = 0; i < width; ++i) dx[i] = rstd * ((dx[i] - mean_h) - ((x[i] - mean) - rest) * rstd * mean_hx);
  }
}

}  // namespace

extern const LayerNormF32 layer_norm_f32 = {forward<float>, backward<float>};
extern const LayerNormF64 layer_norm_f64 = {forward<double>, backward<double>};
}  // namespace linnet::LINNET_LEVEL
