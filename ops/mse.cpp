#include "linnet/ops/mse.h"

#include <algorithm>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

Variable mse(const Variable& predictionv, const Variable& targetv, Reduce reduce) {
  check_defined("mse", predictionv, targetv);
  check_reduce("mse", reduce);
  const Tensor &prediction = predictionv.value(), &target = targetv.value();
  LINNET_CHECK(prediction.shape() == target.shape(), "mse: prediction ", prediction.shape(), " and target ",
               target.shape(), " differ in shape");
  check_same_device("mse", prediction, target);
  check_same_dtype("mse", prediction, target);
  LINNET_CHECK(is_float(prediction.dtype()), "mse: prediction is ", prediction.dtype(), ", f32 or f64 wanted");

  Tensor difference = compute::sub(prediction, target);
  Tensor y = compute::unary(UnaryOp::Square, difference);
  if (reduce != Reduce::none) y = compute::reduce(compute::Reduction::sum, y, {}, false);
  const double n = reduce == Reduce::mean ? static_cast<double>(std::max<int64_t>(1, difference.numel())) : 1;
  if (n != 1) compute::scale_inplace(y, 1 / n);

  const bool want_prediction = wants_grad(predictionv), want_target = wants_grad(targetv);
  return record("mse", y, {predictionv, targetv}, keep(difference),
                [=](const Tensor& dy, const Tensor& difference_kept) -> Gradients {
                  Tensor d = compute::mul(difference_kept, compute::scale(dy, 2 / n));
                  return {want_prediction ? d : Tensor(), want_target ? compute::scale(d, -1) : Tensor()};
                });
}

}  // namespace linnet
