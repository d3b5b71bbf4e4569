// Comparisons, masks and choices: what is true of the values, without gradients, and `where`, which has them.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

// Comparisons give u8: 1 where it holds, 0 elsewhere; false wherever a NaN takes part, but not_equal true. Inputs of
// any one dtype, the shapes broadcast (aligned at the end, sizes equal or 1). Errors: dtypes or shapes that do not fit.
Tensor equal(const Variable& a, const Variable& b);          ///< a == b
Tensor not_equal(const Variable& a, const Variable& b);      ///< a != b
Tensor less(const Variable& a, const Variable& b);           ///< a < b
Tensor less_equal(const Variable& a, const Variable& b);     ///< a <= b
Tensor greater(const Variable& a, const Variable& b);        ///< a > b
Tensor greater_equal(const Variable& a, const Variable& b);  ///< a >= b

// With a number, which is rounded to the dtype of a where a is f32 and taken as it is otherwise.
Tensor equal(const Variable& a, double b);
Tensor not_equal(const Variable& a, double b);
Tensor less(const Variable& a, double b);
Tensor less_equal(const Variable& a, double b);
Tensor greater(const Variable& a, double b);
Tensor greater_equal(const Variable& a, double b);

// Masks: u8 in, u8 out, 1 or 0; any number but 0 counts as true. Shapes broadcast.
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& a);

/// a where mask is not 0, b elsewhere; all three broadcast. The gradient goes to the branch that was taken and is
/// exactly 0 in the other, whatever that holds. Keeps the mask. Errors: a mask that is not u8, dtypes or shapes that do
/// not fit.
Variable where(const Tensor& mask, const Variable& a, const Variable& b);
Variable where(const Tensor& mask, const Variable& a, double b);
Variable where(const Tensor& mask, double a, const Variable& b);

/// i32: the index of the largest element along an axis, which is left out; the first of equals; the first NaN, if there
/// is one. Errors: a scalar, no such axis, an axis of size 0.
Tensor argmax(const Variable& x, int64_t axis = -1);

}  // namespace linnet
