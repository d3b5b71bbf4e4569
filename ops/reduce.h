// Reductions over axes: sum, mean, max, min, logsumexp, var. `axes` lists what is reduced, negative ones counted from
// the end, and an empty list means all; `keep` leaves each reduced axis with size 1 instead of leaving it out. f32 or
// f64; sums are pairwise. Errors: an axis that does not exist or is listed twice, and other dtypes.
#pragma once
#include <initializer_list>

#include "linnet/autograd/variable.h"
#include "linnet/ops/reduce_kind.h"  // Reduce: how a loss gathers its elements

namespace linnet {

Variable sum(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false);   ///< of nothing: 0
Variable mean(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false);  ///< of nothing: NaN

/// The largest (smallest) element; equal ones share the gradient evenly. NaN wins, and its row gets gradient 0. An
/// error where the reduced axes have no element.
Variable max(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false);
Variable min(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false);

/// y = ln sum_i e^{x_i}, as M + ln sum_i e^{x_i - M} with M = max x: no overflow. dx_i = dy e^{x_i - y}. A row of
/// nothing but -inf, or of nothing, gives -inf with gradient 0; a row with +inf gives +inf. Keeps x and y.
Variable logsumexp(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false);

/// sum_i (x_i - mean)^2 / (n - correction), in two passes; correction 1 is the sample variance, 0 that of the
/// population. NaN where n <= correction. Composed of mean, sub, square, sum and div.
Variable var(const Variable& x, std::initializer_list<int64_t> axes = {}, bool keep = false, int64_t correction = 1);

}  // namespace linnet
