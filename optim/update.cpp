#include "linnet/optim/update.h"

#include <type_traits>

#include "linnet/core/threads.h"

namespace linnet::optim {

namespace {

constexpr FloatInstances<OptimKernels> kernels = LINNET_CPU_FLOAT_INSTANCES(optim);

// One pass over four arrays: about a nanosecond an element, bound by memory.
constexpr double kNanoseconds = 1;

}  // namespace

void adaptive_update(const Tensor& gradient, Tensor& m, Tensor& v, Tensor& theta, const AdaptiveStep<double>& s) {
  with_float("optimizer", theta.dtype(), [&]<class T>() {
    const AdaptiveStep<T> step = {T(s.beta1),
                                  T(s.one_minus_beta1),
                                  T(s.beta2),
                                  T(s.one_minus_beta2),
                                  T(s.decay_gradient),
                                  T(s.shrink),
                                  T(s.rate),
                                  T(s.scale),
                                  T(s.eps),
                                  s.adaptive};
    const OptimKernels<T>& k = kernels.of<T>(theta.device());
    const T* g = gradient.data<T>();
    T *pm = m.mutable_data<T>(), *pv = v.mutable_data<T>(), *p = theta.mutable_data<T>();
    parallel_for(theta.numel(), kNanoseconds, [&](int64_t begin, int64_t end) {
      k.adaptive(end - begin, g + begin, pm + begin, pv + begin, p + begin, step);
    });
  });
}

void descent_update(const Tensor& gradient, Tensor& m, Tensor& theta, const DescentStep<double>& s) {
  with_float("optimizer", theta.dtype(), [&]<class T>() {
    const DescentStep<T> step = {T(s.momentum), T(s.decay_gradient), T(s.shrink), T(s.rate), s.nesterov};
    const OptimKernels<T>& k = kernels.of<T>(theta.device());
    const T* g = gradient.data<T>();
    T *pm = m.defined() ? m.mutable_data<T>() : nullptr, *p = theta.mutable_data<T>();
    parallel_for(theta.numel(), kNanoseconds, [&](int64_t begin, int64_t end) {
      k.descent(end - begin, g + begin, pm ? pm + begin : nullptr, p + begin, step);
    });
  });
}

}  // namespace linnet::optim
