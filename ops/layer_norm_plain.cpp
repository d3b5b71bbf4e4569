// layer_norm as one writes it: the reference for the other levels.
#include <cmath>

#include "linnet/ops/layer_norm_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
void forward(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias, T eps, T* y, T* stats) {
  const T n = static_cast<T>(width);
  for (int64_t r = 0; r < rows; ++r, x += width, y += width, stats += 3) {
    T mean = 0, rest = 0, variance = 0;
    for (int64_t i = 0; i < width; ++i) mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < width; ++i) rest += x[i] - mean;
    rest /= n;
    for (int64_t i = 0; i < width; ++i) variance += ((x[i] - mean) - rest) * ((x[i] - mean) - rest);
    const T total = variance / n + eps, rstd = total == 0 ? 0 : 1 / std::sqrt(total);
    for (int64_t i = 0; i < width; ++i) {
      const T xhat = ((x[i] - mean) - rest) * rstd;
      y[i] = xhat * (weight ? weight[i] : 1) + (bias ? bias[i] : 0);
    }
    stats[0] = mean, stats[1] = rest, stats[2] = rstd;
  }
}

template <class T>
void backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight, const T* stats, T* dx, T* dweight,
              T* dbias) {
  const T n = static_cast<T>(width);
  for (int64_t i = 0; i < width && dweight; ++i) dweight[i] = 0;
  for (int64_t i = 0; i < width && dbias; ++i) dbias[i] = 0;
  for (int64_t r = 0; r < rows; ++r, dy += width, x += width, stats += 3) {
    const T mean = stats[0], rest = stats[1], rstd = stats[2];
    T mean_h = 0, mean_hx = 0;
    for (int64_t i = 0; i < width; ++i) {
      const T xhat = ((x[i] - mean) - rest) * rstd, h = weight ? weight[i] * dy[i] : dy[i];
      mean_h += h;
      mean_hx += h * xhat;
      if (dweight) dweight[i] += dy[i] * xhat;
      if (dbias) dbias[i] += dy[i];
    }
    if (!dx) continue;
    mean_h /= n, mean_hx /= n;
    for (int64_t i = 0; i < width; ++i) dx[i] = weight ? weight[i] * dy[i] : dy[i];  // h, rounded as it was when summed
    for (int64_t i = 0; i < width; ++i) dx[i] = rstd * (dx[i] - mean_h - ((x[i] - mean) - rest) * rstd * mean_hx);
    dx += width;
  }
}

}  // namespace

extern const LayerNormF32 layer_norm_f32 = {forward<float>, backward<float>};
extern const LayerNormF64 layer_norm_f64 = {forward<double>, backward<double>};
}  // namespace linnet::plain
