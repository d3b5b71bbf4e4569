// Products of matrices by cuBLAS, whose matrices lie column by column: C^T = op(B)^T op(A)^T.
#include <limits>

#include "linnet/core/cuda_stream.h"
#include "linnet/core/general_cuda.h"

namespace linnet::cuda {
namespace {

int size(int64_t n) {
  LINNET_CHECK(n <= std::numeric_limits<int>::max(), "matmul: a size of ", n, " is too large for cuBLAS");
  return static_cast<int>(n);
}
cublasOperation_t op(bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

template <class T>
void scale_rows(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  each(m * n, [=] __device__(int64_t i) {
    T& to = c[i / n * ldc + i % n];
    to = beta == 0 ? T(0) : beta * to;
  });
}

}  // namespace

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale_rows(m, n, beta, c, ldc);
  if constexpr (sizeof(T) == sizeof(float))
    check(cublasSgemm(blas(), op(tb), op(ta), size(n), size(m), size(k), &alpha, b, size(ldb), a, size(lda), &beta, c,
                      size(ldc)),
          "matmul");
  else
    check(cublasDgemm(blas(), op(tb), op(ta), size(n), size(m), size(k), &alpha, b, size(ldb), a, size(lda), &beta, c,
                      size(ldc)),
          "matmul");
}

template <class T>
void gemm_batched(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, int64_t a_step,
                  const T* b, int64_t ldb, int64_t b_step, T* c, int64_t batch) {
  if (m == 0 || n == 0 || batch == 0) return;
  if (k == 0) return scale_rows(batch * m, n, T(0), c, n);
  const T one = 1, none = 0;
  if constexpr (sizeof(T) == sizeof(float))
    check(cublasSgemmStridedBatched(blas(), op(tb), op(ta), size(n), size(m), size(k), &one, b, size(ldb), b_step, a,
                                    size(lda), a_step, &none, c, size(n), m * n, size(batch)),
          "matmul");
  else
    check(cublasDgemmStridedBatched(blas(), op(tb), op(ta), size(n), size(m), size(k), &one, b, size(ldb), b_step, a,
                                    size(lda), a_step, &none, c, size(n), m * n, size(batch)),
          "matmul");
}

#define LINNET_GEMM(T)                                                                                                \
  template void gemm(bool, bool, int64_t, int64_t, int64_t, T, const T*, int64_t, const T*, int64_t, T, T*, int64_t); \
  template void gemm_batched(bool, bool, int64_t, int64_t, int64_t, const T*, int64_t, int64_t, const T*, int64_t,    \
                             int64_t, T*, int64_t);
LINNET_GEMM(float)
LINNET_GEMM(double)

}  // namespace linnet::cuda
