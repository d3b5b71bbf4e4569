// cross_entropy for one level: two passes over a row forward, one backward.
#include "linnet/core/math.h"
#include "linnet/ops/cross_entropy_kernels.h"
#include "linnet/ops/row_loops.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
void forward(int64_t rows, int64_t classes, const T* x0, const int32_t* targets, int64_t ignore, T smoothing, T* loss,
             T* stats) {
  const T infinity = static_cast<T>(__builtin_inf());
  for (int64_t r = 0; r < rows; ++r, stats += 2) {
    const T* __restrict x = x0 + r * classes;
    loss[r] = T(0), stats[0] = T(0), stats[1] = T(0);
    if (targets[r] == ignore) continue;
    const T m = row_max(classes, x);
    if (m == -infinity) {  // an infinite loss, or NaN where one is in the row
      loss[r] = -row_sum<T>(0, classes, [x](int64_t c) { return x[c]; });
      continue;
    }
    const T sum = row_sum<T>(0, classes, [x, m](int64_t c) { return exp_nonpositive(x[c] - m); });
    T value = log(sum) + (T(1) - smoothing) * (m - x[targets[r]]);
    if (smoothing != T(0))
      value += smoothing * (row_sum<T>(0, classes, [x, m](int64_t c) { return m - x[c]; }) / static_cast<T>(classes));
    loss[r] = value, stats[0] = m, stats[1] = T(1) / sum;
  }
}

template <class T>
void backward(int64_t rows, int64_t classes, const T* x0, const int32_t* targets, int64_t ignore, T smoothing,
              const T* stats, const T* dloss, int64_t dloss_stride, T factor, T* dx0) {
  const T uniform = smoothing / static_cast<T>(classes);
  for (int64_t r = 0; r < rows; ++r, stats += 2) {
    const T* __restrict x = x0 + r * classes;
    T* __restrict dx = dx0 + r * classes;
    if (targets[r] == ignore) {
      for (int64_t c = 0; c < classes; ++c) dx[c] = T(0);
      continue;
    }
    const T scale = dloss[r * dloss_stride] * factor, m = stats[0], inverse = stats[1];
    for (int64_t c = 0; c < classes; ++c) dx[c] = scale * (exp_nonpositive(x[c] - m) * inverse - uniform);
    const int64_t t = targets[r];
    dx[t] = scale * (exp_nonpositive(x[t] - m) * inverse - uniform - (T(1) - smoothing));
  }
}

}  // namespace

extern const CrossEntropyF32 cross_entropy_f32 = {forward<float>, backward<float>};
extern const CrossEntropyF64 cross_entropy_f64 = {forward<double>, backward<double>};
}  // namespace linnet::LINNET_LEVEL
