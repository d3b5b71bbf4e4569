// The general kernels of the level plain: the same loops over libm's functions, and the product of matrices as one
// writes it.
#define LINNET_LEVEL plain
#define LINNET_LIBM
#include "linnet/core/general_loops.h"

namespace linnet::plain {
namespace {

template <class T>
void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b, int64_t ldb,
          T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      T dot = 0;
      for (int64_t l = 0; l < k; ++l)
        dot += (ta ? a[l * lda + i] : a[i * lda + l]) * (tb ? b[j * ldb + l] : b[l * ldb + j]);
      c[i * ldc + j] = alpha * dot + (beta == 0 ? T(0) : beta * c[i * ldc + j]);
    }
}

}  // namespace

extern const GeneralF32 general_f32 = general_table<float>(gemm<float>);
extern const GeneralF64 general_f64 = general_table<double>(gemm<double>);
}  // namespace linnet::plain
