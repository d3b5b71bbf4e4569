// The optimizers' kernels, compiled once a level: loops that the compiler turns into vectors.
#include "linnet/optim/optim_kernels.h"

namespace linnet::LINNET_LEVEL {

namespace {

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

template <class T>
void adaptive(int64_t n, const T* __restrict gradient, T* __restrict m, T* __restrict v, T* __restrict theta,
              const AdaptiveStep<T>& step) {
  const AdaptiveStep<T> s = step;  // a copy: nothing that is written can change it
  if (s.adaptive) {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient[i] + s.decay_gradient * theta[i];
      const T mi = s.beta1 * m[i] + s.one_minus_beta1 * g, vi = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
      const T denominator = s.scale * root(vi) + s.eps;
      const T move = s.rate * mi / (denominator > 0 ? denominator : T(1));
      m[i] = mi;
      v[i] = vi;
      theta[i] = s.shrink * theta[i] - (denominator == 0 ? T(0) : move);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const T g = gradient[i] + s.decay_gradient * theta[i];
      const T mi = s.beta1 * m[i] + s.one_minus_beta1 * g;
      m[i] = mi;
      v[i] = s.beta2 * v[i] + s.one_minus_beta2 * g * g;
      theta[i] = s.shrink * theta[i] - s.rate * mi;
    }
  }
}

template <class T>
void descent(int64_t n, const T* __restrict gradient, T* __restrict m, T* __restrict theta,
             const DescentStep<T>& step) {
  const DescentStep<T> s = step;
  if (!m) {
    for (int64_t i = 0; i < n; ++i)
      theta[i] = s.shrink * theta[i] - s.rate * (gradient[i] + s.decay_gradient * theta[i]);
    return;
  }
  const T of_gradient = s.nesterov ? T(1) : T(0), of_m = s.nesterov ? s.momentum : T(1);
  for (int64_t i = 0; i < n; ++i) {
    const T g = gradient[i] + s.decay_gradient * theta[i];
    const T mi = s.momentum * m[i] + g;
    m[i] = mi;
    theta[i] = s.shrink * theta[i] - s.rate * (of_gradient * g + of_m * mi);
  }
}

}  // namespace

extern const OptimF32 optim_f32 = {adaptive<float>, descent<float>};
extern const OptimF64 optim_f64 = {adaptive<double>, descent<double>};

}  // namespace linnet::LINNET_LEVEL
