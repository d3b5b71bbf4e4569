// One optimizer step of one parameter, by the kernels of its device and dtype. Private to optim/. Scalars come in f64.
#pragma once
#include "linnet/core/tensor.h"
#include "linnet/optim/optim_kernels.h"

namespace linnet::optim {

/// All tensors have the shape, dtype and device of theta.
void adaptive_update(const Tensor& gradient, Tensor& m, Tensor& v, Tensor& theta, const AdaptiveStep<double>& step);
/// m may be undefined: then there is no momentum.
void descent_update(const Tensor& gradient, Tensor& m, Tensor& theta, const DescentStep<double>& step);

}  // namespace linnet::optim
