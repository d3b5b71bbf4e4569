#include "bench/support/gemm_count.h"

#include <cblas.h>
#include <omp.h>

#include <chrono>
#include <mutex>

namespace {

bench::GemmCount count;
std::mutex lock;

}  // namespace

extern "C" {

void __real_cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k,
                        float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                        blasint ldc);

void __wrap_cblas_sgemm(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, blasint k,
                        float alpha, const float* a, blasint lda, const float* b, blasint ldb, float beta, float* c,
                        blasint ldc) {
  const auto start = std::chrono::steady_clock::now();
  __real_cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  const std::lock_guard<std::mutex> guard(lock);
  count.seconds += taken.count() / omp_get_num_threads();
  count.flops += 2.0 * m * n * k;
}

}  // extern "C"

namespace bench {

GemmCount gemm_count() { return count; }
void reset_gemm_count() { count = {}; }

}  // namespace bench
