// mse: the squared difference of a prediction and its target.
#pragma once
#include "linnet/autograd/variable.h"
#include "linnet/ops/reduce_kind.h"

namespace linnet {

/// y = (prediction - target)^2, summed, averaged over all elements, or as it is. The mean of no elements is 0.
///
/// prediction and target of one shape (no broadcasting: it hides mistakes here); y () or, with Reduce::none, of that
/// shape. Backward: dprediction = 2 (prediction - target) dy / n, dtarget = -dprediction. Errors: shapes, dtypes or
/// devices that differ.
Variable mse(const Variable& prediction, const Variable& target, Reduce reduce = Reduce::mean);

}  // namespace linnet
