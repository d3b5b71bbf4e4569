// softmax and log_softmax for one level: short loops over one row, which stays in the first cache.
#include "linnet/core/math.h"
#include "linnet/ops/row_loops.h"
#include "linnet/ops/softmax_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
void softmax(int64_t rows, int64_t width, const T* x0, T* y0) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict x = x0 + r * width;
    T* __restrict y = y0 + r * width;
    const T m = row_max(width, x);
    if (m == static_cast<T>(-__builtin_inf())) {  // no entry is allowed; NaN stays
      for (int64_t i = 0; i < width; ++i) y[i] = x[i] != x[i] ? x[i] : T(0);
      continue;
    }
    for (int64_t i = 0; i < width; ++i) y[i] = exp_nonpositive(x[i] - m);
    const T scale = T(1) / row_sum<T>(0, width, [y](int64_t i) { return y[i]; });
    for (int64_t i = 0; i < width; ++i) y[i] *= scale;
  }
}

template <class T>
void softmax_backward(int64_t rows, int64_t width, const T* y0, const T* dy0, T* dx0) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict y = y0 + r * width, * __restrict dy = dy0 + r * width;
    T* __restrict dx = dx0 + r * width;
    const T dot = row_sum<T>(0, width, [y, dy](int64_t i) { return y[i] * dy[i]; });
    for (int64_t i = 0; i < width; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
}

template <class T>
void log_softmax(int64_t rows, int64_t width, const T* x0, T* y0) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict x = x0 + r * width;
    T* __restrict y = y0 + r * width;
    const T m = row_max(width, x);
    if (m == static_cast<T>(-__builtin_inf())) {
      for (int64_t i = 0; i < width; ++i) y[i] = x[i];
      continue;
    }
    for (int64_t i = 0; i < width; ++i) y[i] = exp_nonpositive(x[i] - m);
    const T log_sum = log(row_sum<T>(0, width, [y](int64_t i) { return y[i]; }));
    for (int64_t i = 0; i < width; ++i) y[i] = (x[i] - m) - log_sum;
  }
}

template <class T>
void log_softmax_backward(int64_t rows, int64_t width, const T* y0, const T* dy0, T* dx0) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* __restrict y = y0 + r * width, * __restrict dy = dy0 + r * width;
    T* __restrict dx = dx0 + r * width;
    const T sum = row_sum<T>(0, width, [dy](int64_t i) { return dy[i]; });
    for (int64_t i = 0; i < width; ++i) dx[i] = dy[i] - exp_nonpositive(y[i]) * sum;
  }
}

}  // namespace

extern const SoftmaxF32 softmax_f32 = {softmax<float>, softmax_backward<float>, log_softmax<float>,
                                       log_softmax_backward<float>};
extern const SoftmaxF64 softmax_f64 = {softmax<double>, softmax_backward<double>, log_softmax<double>,
                                       log_softmax_backward<double>};
}  // namespace linnet::LINNET_LEVEL
