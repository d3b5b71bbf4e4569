// The optimizers' kernels: one pass over the memory of a parameter, its gradient and its state.
#pragma once
#include <cstdint>
#include <vector>

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

template <class T>
struct AdaptivePart {
  int64_t n;
  const T* gradient;
  T *m, *v, *theta;
  AdaptiveStep<T> step;
};
template <class T>
struct DescentPart {
  int64_t n;
  const T* gradient;
  T *m, *theta;
  DescentStep<T> step;
};
template <class T>
struct GradientPart {
  int64_t n;
  T* values;
};
struct GradientSize {
  double sum_of_squares;
  bool finite;  // all of its values; the sum of f64 may be infinite even so
};

/// The same on a GPU, and what gradient clipping wants, of all parameters at once.
template <class T>
struct OptimListKernels {
  void (*adaptive)(const std::vector<AdaptivePart<T>>& parts);
  void (*descent)(const std::vector<DescentPart<T>>& parts);
  std::vector<GradientSize> (*sizes)(const std::vector<GradientPart<T>>& parts);
  void (*scale)(const std::vector<GradientPart<T>>& parts, double factor);
};

using OptimF32 = OptimKernels<float>;
using OptimF64 = OptimKernels<double>;
using OptimListF32 = OptimListKernels<float>;
using OptimListF64 = OptimListKernels<double>;

}  // namespace linnet

LINNET_DECLARE_LEVELS(OptimF32, optim_f32)
LINNET_DECLARE_LEVELS(OptimF64, optim_f64)
LINNET_DECLARE_CUDA(OptimListF32, optim_list_f32)
LINNET_DECLARE_CUDA(OptimListF64, optim_list_f64)
