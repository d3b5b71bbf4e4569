// linear: a matrix times every row, plus a bias.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y = x W^T + b over the last axis.
///
/// x (..., in), weight (out, in), bias (out) or undefined; y (..., out).
/// Backward: dx = dy W, dW = dy^T x and db = the sum of dy, over all rows; each only where it is wanted.
/// Errors: sizes that do not fit, dtypes or devices that differ.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias = {});

/// The same without a tape, into y (..., out) as it lies, or added to what is there.
enum class Into { overwrite, add };
void linear_into(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y, Into into = Into::overwrite);

}  // namespace linnet
