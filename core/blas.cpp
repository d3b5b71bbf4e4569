#include "linnet/core/blas.h"

#include <cblas.h>

#include <algorithm>
#include <limits>

#include "linnet/core/error.h"
#include "linnet/core/threads.h"

namespace linnet {
namespace {

template <class T, class Call>
void gemm(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, T beta, T* c, int64_t ldc, const Call& call) {
  if (m == 0 || n == 0) return;
  if (k == 0 || (beta == 0 && (m == 1 || n == 1)))  // some vector kernels of OpenBLAS read C though beta is 0
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == 0 ? T(0) : beta * c[i * ldc + j];
  if (k == 0) return;
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  LINNET_CHECK(std::max({m, n, k, lda, ldb, ldc}) <= kMax, "gemm: ", m, " x ", n, " x ", k, " is too large for BLAS");
  num_threads();  // OpenBLAS follows the one knob from the first call on
  call();
}

}  // namespace

void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
               const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  gemm(m, n, k, lda, ldb, beta, c, ldc, [&] {
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda,
                b, ldb, beta, c, ldc);
  });
}

void blas_gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
               const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  gemm(m, n, k, lda, ldb, beta, c, ldc, [&] {
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda,
                b, ldb, beta, c, ldc);
  });
}

}  // namespace linnet
