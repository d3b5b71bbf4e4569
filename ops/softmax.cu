// softmax and log_softmax on a GPU: a team of threads a row, read anew for each pass, since it lies in the cache.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/math.h"
#include "linnet/ops/row_teams.h"
#include "linnet/ops/softmax_kernels.h"

namespace linnet::cuda {
namespace {

template <class T>
void softmax(int64_t rows, int64_t width, const T* x0, T* y0) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T* const x = x0 + row * width;
    T* const y = y0 + row * width;
    const T m = largest_of(team, width, x);
    if (m == -kInfinity<T>) {  // no entry is allowed; NaN stays
      for (int64_t i = team.place; i < width; i += team.size) y[i] = x[i] != x[i] ? x[i] : T(0);
      return;
    }
    const T scale = T(1) / sum_of<T>(team, width, [x, m](int64_t i) { return exp_nonpositive(x[i] - m); });
    for (int64_t i = team.place; i < width; i += team.size) y[i] = exp_nonpositive(x[i] - m) * scale;
  });
}

template <class T>
void softmax_backward(int64_t rows, int64_t width, const T* y0, const T* dy0, T* dx0) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T *const y = y0 + row * width, *const dy = dy0 + row * width;
    const T dot = sum_of<T>(team, width, [y, dy](int64_t i) { return y[i] * dy[i]; });
    for (int64_t i = team.place; i < width; i += team.size) dx0[row * width + i] = y[i] * (dy[i] - dot);
  });
}

template <class T>
void log_softmax(int64_t rows, int64_t width, const T* x0, T* y0) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T* const x = x0 + row * width;
    T* const y = y0 + row * width;
    const T m = largest_of(team, width, x);
    if (m == -kInfinity<T>) {
      for (int64_t i = team.place; i < width; i += team.size) y[i] = x[i];
      return;
    }
    const T log_sum = log(sum_of<T>(team, width, [x, m](int64_t i) { return exp_nonpositive(x[i] - m); }));
    for (int64_t i = team.place; i < width; i += team.size) y[i] = (x[i] - m) - log_sum;
  });
}

template <class T>
void log_softmax_backward(int64_t rows, int64_t width, const T* y0, const T* dy0, T* dx0) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T *const y = y0 + row * width, *const dy = dy0 + row * width;
    const T sum = sum_of<T>(team, width, [dy](int64_t i) { return dy[i]; });
    for (int64_t i = team.place; i < width; i += team.size) dx0[row * width + i] = dy[i] - exp_nonpositive(y[i]) * sum;
  });
}

}  // namespace

extern const SoftmaxF32 softmax_f32 = {softmax<float>, softmax_backward<float>, log_softmax<float>,
                                       log_softmax_backward<float>};
extern const SoftmaxF64 softmax_f64 = {softmax<double>, softmax_backward<double>, log_softmax<double>,
                                       log_softmax_backward<double>};

}  // namespace linnet::cuda
