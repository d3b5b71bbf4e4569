// matmul: the product of matrices, batched, with either side transposed.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y = op(a) op(b), op being the exchange of the last two axes where asked for.
///
/// a (..., m, k), or (..., k, m) with transpose_a; b (..., k, n), or (..., n, k) with transpose_b; y (..., m, n). The
/// leading axes broadcast. k = 0 gives zeros. Backward: da = dy op(b)^T, db = op(a)^T dy, summed over the axes that
/// were broadcast. Errors: fewer than two axes, columns of a other than rows of b, leading axes that do not broadcast,
/// dtypes or devices that differ.
Variable matmul(const Variable& a, const Variable& b, bool transpose_a = false, bool transpose_b = false);

}  // namespace linnet
