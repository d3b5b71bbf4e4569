// cumsum: running sums along one axis.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y_i = sum of x_j over j <= i along the axis, or over j >= i where reverse; the shape stays. f32 is added up in f64.
/// NaN stays from where it comes, and so does infinity. Backward: dx is the same of dy from the other end; keeps
/// nothing. Errors: an axis that x has not, a dtype that is not f32 or f64.
Variable cumsum(const Variable& x, int64_t axis, bool reverse = false);

}  // namespace linnet
