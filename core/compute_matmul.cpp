// Products of matrices: one GEMM where the batch folds into the rows, else one a matrix.
#include <algorithm>

#include "linnet/core/blas.h"
#include "linnet/core/compute.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"

namespace linnet::compute {

template <class T>
void gemm(Device device, bool ta, bool tb, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
          const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  const auto kernel = general_kernels<T>(device).gemm;
  if (device != Device::cpu || ta || !tb || m > kFewRows)
    return kernel(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  constexpr int64_t kColumns = 16;  // whole vectors, few enough that threads get equal shares
  const double cost = static_cast<double>(k * std::min(n, kColumns)) * std::max(0.1, 0.025 * static_cast<double>(m));
  parallel_for((n + kColumns - 1) / kColumns, cost, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kColumns, columns = std::min(n, end * kColumns) - first;
    kernel(ta, tb, m, columns, k, alpha, a, lda, b + first * ldb, ldb, beta, c + first, ldc);
  });
}
template void gemm(Device, bool, bool, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t,
                   float, float*, int64_t);
template void gemm(Device, bool, bool, int64_t, int64_t, int64_t, double, const double*, int64_t, const double*,
                   int64_t, double, double*, int64_t);

namespace {

/// Which matrix of a stack of shape `from` broadcasts to matrix i of a stack of shape `to`.
int64_t source_matrix(int64_t i, const Shape& to, const Shape& from) {
  int64_t at = 0, step = 1;
  for (int d = 1; d <= to.rank(); ++d) {
    int64_t coordinate = i % to[to.rank() - d];
    i /= to[to.rank() - d];
    if (d > from.rank()) continue;
    if (from[from.rank() - d] != 1) at += coordinate * step;
    step *= from[from.rank() - d];
  }
  return at;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  check_same_device("matmul", a, b);
  check_same_dtype("matmul", a, b);
  LINNET_CHECK(a.rank() >= 2 && b.rank() >= 2, "matmul: ", a.shape(), " and ", b.shape(),
               " given, each with at least two axes wanted; reshape vectors to (1, n) or (n, 1)");
  int64_t m = a.size(ta ? -1 : -2), k = a.size(ta ? -2 : -1), n = b.size(tb ? -2 : -1), k_b = b.size(tb ? -1 : -2);
  LINNET_CHECK(k == k_b, "matmul: ", a.shape(), ta ? " transposed" : "", " and ", b.shape(), tb ? " transposed" : "",
               " given; the inner sizes ", k, " and ", k_b, " must be equal");
  Shape stack_a = a.shape().first(a.rank() - 2), stack_b = b.shape().first(b.rank() - 2);
  Shape stack = broadcast_shapes("matmul", stack_a, stack_b);
  Shape shape = stack;
  shape.push_back(m);
  shape.push_back(n);
  Tensor y = Tensor::empty(shape, a.dtype(), a.device());
  int64_t lda = std::max<int64_t>(1, a.size(-1)), ldb = std::max<int64_t>(1, b.size(-1)), ldc = std::max<int64_t>(1, n);
  with_float("matmul", a.dtype(), [&]<class T>() {
    const auto& table = general_kernels<T>(a.device());
    const auto kernel = table.gemm;
    T* out = y.mutable_data<T>();
    if (stack_b.numel() == 1 && !ta && stack == stack_a)  // the batch is more rows
      return gemm<T>(a.device(), false, tb, stack.numel() * m, n, k, 1, a.data<T>(), lda, b.data<T>(), ldb, 0, out,
                     ldc);
    const auto step = [&](const Shape& from, int64_t size) { return from == stack ? size : int64_t{0}; };
    const auto is_regular = [&](const Shape& from) { return from == stack || from.numel() == 1; };
    if (table.gemm_batched && is_regular(stack_a) && is_regular(stack_b))
      return table.gemm_batched(ta, tb, m, n, k, a.data<T>(), lda, step(stack_a, m * k), b.data<T>(), ldb,
                                step(stack_b, k * n), out, stack.numel());
    double cost = 0.02 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) + 50;
    parallel_for(stack.numel(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernel(ta, tb, m, n, k, T(1), a.data<T>() + source_matrix(i, stack, stack_a) * m * k, lda,
               b.data<T>() + source_matrix(i, stack, stack_b) * k * n, ldb, T(0), out + i * m * n, ldc);
    });
  });
  return y;
}

}  // namespace linnet::compute
