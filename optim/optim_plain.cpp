// The optimizers' kernels as one would write them on paper: the reference for the other levels.
#include <cmath>

#include "linnet/optim/optim_kernels.h"

namespace linnet::plain {

namespace {

template <class T>
void adaptive(int64_t n, const T* gradient, T* m, T* v, T* theta, const AdaptiveStep<T>& s) {
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient[i] + s.decay_gradient * theta[i];
    m[i] = s.beta1 * m[i] + s.one_minus_beta1 * g;
    v[i] = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
    T denominator = s.adaptive ? s.scale * std::sqrt(v[i]) + s.eps : T(1);
    theta[i] = s.shrink * theta[i];
    if (denominator != 0) theta[i] -= s.rate * m[i] / denominator;
  }
}

template <class T>
void descent(int64_t n, const T* gradient, T* m, T* theta, const DescentStep<T>& s) {
  for (int64_t i = 0; i < n; ++i) {
    T g = gradient[i] + s.decay_gradient * theta[i];
    T direction = g;
    if (m) {
      m[i] = s.momentum * m[i] + g;
      direction = s.nesterov ? g + s.momentum * m[i] : m[i];
    }
    theta[i] = s.shrink * theta[i] - s.rate * direction;
  }
}

}  // namespace

const OptimF32 optim_f32 = {adaptive<float>, descent<float>};
const OptimF64 optim_f64 = {adaptive<double>, descent<double>};

}  // namespace linnet::plain
