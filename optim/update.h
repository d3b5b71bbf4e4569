// What an optimizer's step and gradient clipping do to many tensors, by the kernels of their device and dtype: a CPU
// takes one after the other, a GPU all at once. Private to optim/. Scalars come in f64.
#pragma once
#include <vector>

#include "linnet/core/tensor.h"
#include "linnet/optim/optim_kernels.h"

namespace linnet::optim {

/// The updates of one step: collected, then run. All tensors of one have the shape, dtype and device of theta.
class Updates {
 public:
  void adaptive(const Tensor& gradient, const Tensor& m, const Tensor& v, const Tensor& theta,
                const AdaptiveStep<double>& step) {
    adaptive_.push_back({gradient, m, v, theta, step});
  }
  /// m may be undefined: then there is no momentum.
  void descent(const Tensor& gradient, const Tensor& m, const Tensor& theta, const DescentStep<double>& step) {
    descent_.push_back({gradient, m, theta, step});
  }
  void run();

 private:
  struct Adaptive {
    Tensor gradient, m, v, theta;
    AdaptiveStep<double> step;
  };
  struct Descent {
    Tensor gradient, m, theta;
    DescentStep<double> step;
  };
  std::vector<Adaptive> adaptive_;
  std::vector<Descent> descent_;
};

/// Of each gradient, f32 or f64.
std::vector<GradientSize> sizes_of(const std::vector<Tensor>& gradients);
void scale(std::vector<Tensor>& gradients, double factor);

}  // namespace linnet::optim
