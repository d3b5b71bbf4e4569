// softmax and log_softmax: an axis as probabilities, or as their logarithms.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y_i = exp(x_i - max) / sum_j exp(x_j - max) over one axis; any shape with that axis.
/// Finite input never gives NaN. -infinity has probability 0; where the whole row is -infinity, output and gradient are
/// 0. Backward: dx = y (dy - sum(dy y)). Errors: an axis that x has not, a dtype that is not f32 or f64.
Variable softmax(const Variable& x, int64_t axis = -1);

/// y_i = x_i - max - log sum_j exp(x_j - max) over one axis; a row of -infinity stays what it is.
/// Backward: dx = dy - exp(y) sum(dy).
/// Errors: as softmax.
Variable log_softmax(const Variable& x, int64_t axis = -1);

}  // namespace linnet
