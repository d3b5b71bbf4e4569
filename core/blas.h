// The one door to OpenBLAS: row-major GEMM, with the cases that BLAS leaves open settled (k = 0, empty, beta = 0).
#pragma once
#include <cstdint>

namespace linnet {

/// A product A B^T with at most so many rows of A is left to linnet's own loops and threads.
inline constexpr int64_t kFewRows = 256;

void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
               const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

}  // namespace linnet
