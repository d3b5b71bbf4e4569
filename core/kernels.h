// The general kernels: one table of plain function pointers a number type and level. Each runs on the calling thread,
// over memory that the caller has checked; core/compute.cpp splits the work over threads. Sizes and strides count
// elements.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"
#include "linnet/core/functors.h"

namespace linnet {

/// An elementwise loop with broadcasting: the output is contiguous over `size`; inputs have one stride an axis, 0 where
/// they repeat.
struct BroadcastLoop {
  int rank = 0;
  int64_t size[8] = {};
  int64_t stride[3][8] = {};  // of each input
};

/// A permuted copy: output axis i has size[i] and reads the input with stride[i].
struct PermuteLoop {
  int rank = 0;
  int64_t size[8] = {};
  int64_t stride[8] = {};
};

template <class T>
struct GeneralKernels {
  // Elementwise, indexed by the op (core/functors.h). p, q are the op's parameters.
  void (*unary[kUnaryCount])(int64_t n, const T* x, T* y, T p, T q);
  void (*unary_slope[kUnaryCount])(int64_t n, const T* x, const T* y, const T* dy, T* dx, T p,
                                   T q);  // dx = dy df(x, y)
  void (*binary[kBinaryCount])(const BroadcastLoop& loop, const T* a, const T* b, T* y);
  void (*binary_slope_a[kBinaryCount])(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* da);
  void (*binary_slope_b[kBinaryCount])(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* db);
  void (*compare[kCompareCount])(const BroadcastLoop& loop, const T* a, const T* b, uint8_t* y);
  void (*where)(const BroadcastLoop& loop, const uint8_t* mask, const T* a, const T* b, T* y);

  void (*accumulate)(int64_t n, const T* x, T* y);  // y += x
  // The same for rows of `width` that lie a step apart, 0 where they repeat.
  void (*accumulate_rows)(int64_t rows, int64_t width, const T* x, int64_t x_step, T* y, int64_t y_step);
  void (*scale)(int64_t n, T a, T* y);  // y *= a
  void (*permute)(const PermuteLoop& loop, const T* x, T* y);

  // Reductions of the middle axis: x (outer, n, inner) -> y (outer, inner). Sums are pairwise. n = 0 sums to 0.
  void (*sum)(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
  void (*max)(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);  // NaN wins
  void (*min)(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
  void (*argmax)(int64_t outer, int64_t n, int64_t inner, const T* x, int32_t* y);  // the first of equals, or NaN
  // y[o, i, j]: the sum of x[o, .., j] up to i, or from i on where reverse. In double.
  void (*cumsum)(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x, T* y);
  double (*sum_of_squares)(int64_t n, const T* x);  // in double
  bool (*all_finite)(int64_t n, const T* x);

  // Rows of a table (rows x width): y[i] = table[index[i]]; table[index[i]] += y[i] for row_begin <= index < row_end.
  void (*gather_rows)(int64_t n, int64_t width, const int32_t* index, const T* table, T* y);
  void (*scatter_add_rows)(int64_t n, int64_t width, const int32_t* index, const T* y, T* table, int64_t row_begin,
                           int64_t row_end);

  // C (m x n) = alpha op(A) op(B) + beta C, row-major; A is (m x k), or (k x m) where ta; B (k x n), or (n x k) where
  // tb. beta = 0 never reads C; k = 0 gives beta C. OpenBLAS has threads of its own.
  void (*gemm)(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
               int64_t ldb, T beta, T* c, int64_t ldc);
  // As many, of matrices that lie a step apart, 0 where they repeat; C is contiguous. Null where one after the other is
  // as good.
  void (*gemm_batched)(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, int64_t a_step,
                       const T* b, int64_t ldb, int64_t b_step, T* c, int64_t batch) = nullptr;
};

/// Which levels there are is known inside the library only.
template <class T>
const GeneralKernels<T>& general_kernels(Device device);

using GeneralF32 = GeneralKernels<float>;
using GeneralF64 = GeneralKernels<double>;
}  // namespace linnet
LINNET_DECLARE_LEVELS(GeneralF32, general_f32)
LINNET_DECLARE_CUDA(GeneralF32, general_f32)
LINNET_DECLARE_LEVELS(GeneralF64, general_f64)
LINNET_DECLARE_CUDA(GeneralF64, general_f64)
