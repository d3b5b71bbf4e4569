// softmax and log_softmax as one writes them: the reference for the other levels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/ops/softmax_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
constexpr T kNothing = -std::numeric_limits<T>::infinity();

template <class T>
T largest(int64_t width, const T* x) {
  T m = kNothing<T>;
  for (int64_t i = 0; i < width; ++i) m = std::max(m, x[i]);
  return m;
}

template <class T>
void softmax(int64_t rows, int64_t width, const T* x, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const T m = largest(width, x);
    T sum = 0;
    for (int64_t i = 0; i < width; ++i) {
      y[i] = m == kNothing<T> ? 0 : std::exp(x[i] - m);
      if (std::isnan(x[i])) y[i] = x[i];
      sum += y[i];
    }
    for (int64_t i = 0; i < width; ++i) y[i] = sum == 0 ? 0 : y[i] / sum;
  }
}

template <class T>
void softmax_backward(int64_t rows, int64_t width, const T* y, const T* dy, T* dx) {
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    T dot = 0;
    for (int64_t i = 0; i < width; ++i) dot += y[i] * dy[i];
    for (int64_t i = 0; i < width; ++i) dx[i] = y[i] * (dy[i] - dot);
  }
}

template <class T>
void log_softmax(int64_t rows, int64_t width, const T* x, T* y) {
  for (int64_t r = 0; r < rows; ++r, x += width, y += width) {
    const T m = largest(width, x);
    T sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += std::exp(x[i] - m);
    for (int64_t i = 0; i < width; ++i) y[i] = m == kNothing<T> ? x[i] : (x[i] - m) - std::log(sum);
  }
}

template <class T>
void log_softmax_backward(int64_t rows, int64_t width, const T* y, const T* dy, T* dx) {
  for (int64_t r = 0; r < rows; ++r, y += width, dy += width, dx += width) {
    T sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += dy[i];
    for (int64_t i = 0; i < width; ++i) dx[i] = dy[i] - std::exp(y[i]) * sum;
  }
}

}  // namespace

extern const SoftmaxF32 softmax_f32 = {softmax<float>, softmax_backward<float>, log_softmax<float>,
                                       log_softmax_backward<float>};
extern const SoftmaxF64 softmax_f64 = {softmax<double>, softmax_backward<double>, log_softmax<double>,
                                       log_softmax_backward<double>};
}  // namespace linnet::plain
