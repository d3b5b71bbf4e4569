// Arithmetic on tensors, without gradients: what forward and backward passes are written with. Every function returns
// new memory unless its name ends in _inplace, or in _into: that writes to memory that is there, of the right shape and
// dtype, and shared with no input. Errors name the op given first.
#pragma once
#include <span>
#include <vector>

#include "linnet/core/functors.h"
#include "linnet/core/tensor.h"

namespace linnet::compute {

Tensor unary(UnaryOp op, const Tensor& x, double p = 0, double q = 0);
void unary_into(UnaryOp op, const Tensor& x, Tensor& y, double p = 0, double q = 0);
/// dy * df(x, y); x or y may be undefined where the op's slope does not need it.
Tensor unary_slope(UnaryOp op, const Tensor& x, const Tensor& y, const Tensor& dy, double p = 0, double q = 0);
/// a op b with broadcasting; f32 or f64, both the same.
Tensor binary(BinaryOp op, const Tensor& a, const Tensor& b);
Tensor binary_slope_a(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& dy);  ///< in the shape of a
Tensor binary_slope_b(BinaryOp op, const Tensor& a, const Tensor& b, const Tensor& dy);  ///< in the shape of b
Tensor compare(CompareOp op, const Tensor& a, const Tensor& b);                          ///< u8: 1 where it holds
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);                      ///< broadcasts; mask is u8

inline Tensor add(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Add, a, b); }
inline Tensor sub(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Sub, a, b); }
inline Tensor mul(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Mul, a, b); }
inline Tensor div(const Tensor& a, const Tensor& b) { return binary(BinaryOp::Div, a, b); }
inline Tensor scale(const Tensor& x, double factor) { return unary(UnaryOp::Affine, x, factor, 0); }

void accumulate_inplace(Tensor& y, const Tensor& x);  ///< y += x, same shape
void add_row_inplace(Tensor& y, const Tensor& row);   ///< every row of y (..., width) += row (width)
void scale_inplace(Tensor& y, double factor);

enum class Reduction { sum, max, min };
/// Over the given axes (negative count from the end; none means all). keep leaves them with size 1.
Tensor reduce(Reduction kind, const Tensor& x, std::span<const int64_t> axes, bool keep);
Tensor sum_to(const Tensor& x, const Shape& shape);  ///< undoes a broadcast: sums x down to shape
Tensor broadcast_to(const Tensor& x, const Shape& shape);
Tensor argmax(const Tensor& x, int64_t axis);                        ///< i32, the axis left out
Tensor cumsum(const Tensor& x, int64_t axis, bool reverse = false);  ///< along the axis; reverse: from its end
double sum_of_squares(const Tensor& x);
bool all_finite(const Tensor& x);  ///< true for integer tensors

Tensor permute(const Tensor& x, std::span<const int> order);  ///< output axis i is input axis order[i]
Tensor transpose(const Tensor& x, int64_t axis_a, int64_t axis_b);
Tensor concat(std::span<const Tensor> parts, int64_t axis);                          ///< any dtype
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end);             ///< new memory; any dtype
void add_slice_inplace(Tensor& y, int64_t axis, int64_t begin, const Tensor& part);  ///< y[.., begin:.., ..] += part

/// Rows index[i] of a table (rows, ...) of any dtype; index i32 of any shape; range-checked, naming the op.
Tensor gather_rows(const char* op, const Tensor& table, const Tensor& index);
void gather_rows_into(const char* op, const Tensor& table, const Tensor& index, Tensor& y);
/// table[index[i]] += rows[i], in a fixed order. The index has been checked.
void scatter_add_rows_inplace(Tensor& table, const Tensor& index, const Tensor& rows);
/// Throws `op: index 7 at position 3, but there are 5 rows` where an index is not in 0 .. rows-1.
void check_indices(const char* op, const Tensor& index, int64_t rows);

/// op(A) op(B) for (..., m, k) and (..., k, n), the leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
/// C = alpha op(A) op(B) + beta C on raw rows, for matrices inside larger tensors; threads and device as the tensors'.
template <class T>
void gemm(Device device, bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc);

}  // namespace linnet::compute
