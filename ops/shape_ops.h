// Operations that only move elements: reshape, transpose, permute, slice, concat, stack, split, gather_rows,
// broadcast_to. Axes may be negative and then count from the end. Any dtype where no gradient is asked for, unless said
// otherwise.
#pragma once
#include <initializer_list>
#include <optional>
#include <vector>

#include "linnet/autograd/variable.h"

namespace linnet {

/// The same elements in row-major order under another shape; one size may be -1 and is worked out. Shares memory. An
/// error where the numbers of elements differ.
Variable reshape(const Variable& x, std::initializer_list<int64_t> sizes);
Variable reshape(const Variable& x, const Shape& shape);

/// Exchanges two axes. f32 or f64.
Variable transpose(const Variable& x, int64_t a = -2, int64_t b = -1);

/// Axis i of the output is axis order[i] of x. f32 or f64. An error unless every axis is listed once.
Variable permute(const Variable& x, std::initializer_list<int64_t> order);

/// Elements begin .. end-1 of an axis. Negative begin and end count from the end; end left out is the size of the axis.
/// begin = end gives size 0. Of the first axis it shares memory. An error unless 0 <= begin <= end <= size.
Variable slice(const Variable& x, int64_t axis, int64_t begin, std::optional<int64_t> end = std::nullopt);

/// Joins along an axis that exists. An error for no parts, and where ranks, dtypes or sizes of the other axes differ.
Variable concat(const std::vector<Variable>& parts, int64_t axis);

/// Joins along a new axis, which stands at `axis` in the output. An error for no parts or shapes that differ.
Variable stack(const std::vector<Variable>& parts, int64_t axis);

/// Consecutive parts with these sizes along an axis; an error unless they add up to the size of the axis.
std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& sizes, int64_t axis);
/// Equal parts; an error where they do not divide the size of the axis.
std::vector<Variable> split(const Variable& x, int64_t parts, int64_t axis);

/// Rows of a table: (rows, ...) and an i32 index of any shape give (index..., ...). f32 or f64. A row that is taken
/// more than once gets the sum of the gradients, added in a fixed order. An error names the index that is not in 0 ..
/// rows-1.
Variable gather_rows(const Variable& table, const Tensor& index);

/// Repeats x along new leading axes and axes of size 1. f32 or f64. The gradient is summed back. An error where x does
/// not fit.
Variable broadcast_to(const Variable& x, const Shape& shape);

}  // namespace linnet
