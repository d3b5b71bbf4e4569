// embedding: rows of a table, looked up by index.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"

namespace linnet {

/// y[i] = weight[index[i]].
///
/// weight (rows, dim), index i32 of any shape (...); y (..., dim).
/// Backward: dweight[index[i]] += dy[i], in a fixed order. The padding row is read as it stands, and its gradient is 0.
/// Errors: an index or a padding row outside 0 .. rows-1, an index that is not i32.
Variable embedding(const Variable& weight, const Tensor& index, std::optional<int64_t> padding_row = std::nullopt);

}  // namespace linnet
