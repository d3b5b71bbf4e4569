// cross_entropy as one writes it: the reference for the other levels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/ops/cross_entropy_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
void forward(int64_t rows, int64_t classes, const T* x, const int32_t* targets, int64_t ignore, T smoothing, T* loss,
             T* stats) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (int64_t r = 0; r < rows; ++r, x += classes, stats += 2) {
    loss[r] = 0, stats[0] = 0, stats[1] = 0;
    if (targets[r] == ignore) continue;
    T m = -kInfinity, sum = 0, below = 0;  // below: sum of max - x
    for (int64_t c = 0; c < classes; ++c) m = std::max(m, x[c]);
    if (m == -kInfinity) {  // every class is excluded: nothing to learn from, an infinite loss; or NaN, where one is
      for (int64_t c = 0; c < classes; ++c) loss[r] -= x[c];
      continue;
    }
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - m);
    loss[r] = std::log(sum) + (1 - smoothing) * (m - x[targets[r]]);
    if (smoothing != 0) {
      for (int64_t c = 0; c < classes; ++c) below += m - x[c];
      loss[r] += smoothing * (below / static_cast<T>(classes));
    }
    stats[0] = m, stats[1] = 1 / sum;
  }
}

template <class T>
void backward(int64_t rows, int64_t classes, const T* x, const int32_t* targets, int64_t ignore, T smoothing,
              const T* stats, const T* dloss, int64_t dloss_stride, T factor, T* dx) {
  for (int64_t r = 0; r < rows; ++r, x += classes, dx += classes, stats += 2) {
    const T scale = dloss[r * dloss_stride] * factor, uniform = smoothing / static_cast<T>(classes);
    for (int64_t c = 0; c < classes; ++c) {
      const T target = uniform + (c == targets[r] ? 1 - smoothing : 0);
      dx[c] = targets[r] == ignore ? 0 : scale * (std::exp(x[c] - stats[0]) * stats[1] - target);
    }
  }
}

}  // namespace

extern const CrossEntropyF32 cross_entropy_f32 = {forward<float>, backward<float>};
extern const CrossEntropyF64 cross_entropy_f64 = {forward<double>, backward<double>};
}  // namespace linnet::plain
