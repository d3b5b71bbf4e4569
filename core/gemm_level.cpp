// The product of matrices of one level: own loops for few rows, OpenBLAS for the rest.
#include "linnet/core/gemm_level.h"

#include "linnet/core/blas.h"
#include "linnet/core/few_rows.h"

namespace linnet::LINNET_LEVEL {
namespace {

/// OpenBLAS may know of wider vectors than the level portable does; and a short k is not worth transposes.
bool few(int64_t m, int64_t k) { return m <= kDotRows || (kBytes > 16 && m <= kFewRows && k >= 64); }

}  // namespace

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda, const float* b,
          int64_t ldb, float beta, float* c, int64_t ldc) {
  if (!ta && tb && k > 0 && few(m, k)) return few_rows<float>({m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
  blas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  if (!ta && tb && k > 0 && few(m, k)) return few_rows<double>({m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
  blas_gemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace linnet::LINNET_LEVEL
