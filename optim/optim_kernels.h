// The optimizers' kernels: one pass over the memory of a parameter, its gradient and its state.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

/// One step of the Adam family:
///     g = gradient + decay_gradient theta;   m = beta1 m + (1-beta1) g;   v = beta2 v + (1-beta2) g^2
///     theta = shrink theta - rate m / (scale sqrt(v) + eps)    where adaptive, else shrink theta - rate m
/// An element whose denominator is 0 (eps = 0 and no gradient so far) only shrinks.
template <class T>
struct AdaptiveStep {
  T beta1, one_minus_beta1, beta2, one_minus_beta2;
  T decay_gradient, shrink;
  T rate, scale, eps;
  bool adaptive;
};

/// One step of gradient descent: g = gradient + decay_gradient theta; m = momentum m + g;
/// theta = shrink theta - rate (m, or g + momentum m where nesterov). m may be null: then momentum is 0.
template <class T>
struct DescentStep {
  T momentum, decay_gradient, shrink, rate;
  bool nesterov;
};

template <class T>
struct OptimKernels {
  void (*adaptive)(int64_t n, const T* gradient, T* m, T* v, T* theta, const AdaptiveStep<T>& step);
  void (*descent)(int64_t n, const T* gradient, T* m, T* theta, const DescentStep<T>& step);
};

using OptimF32 = OptimKernels<float>;
using OptimF64 = OptimKernels<double>;

}  // namespace linnet

LINNET_DECLARE_LEVELS(OptimF32, optim_f32)
LINNET_DECLARE_LEVELS(OptimF64, optim_f64)
