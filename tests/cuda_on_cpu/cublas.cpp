#include "cuda_on_cpu/cublas.h"

#include <cblas.h>

#include <algorithm>

#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/settings.h"

namespace cuda_on_cpu {
namespace {

void gemm(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k, float alpha, const float* a, int lda,
          const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasColMajor, a_op, b_op, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE a_op, CBLAS_TRANSPOSE b_op, int m, int n, int k, double alpha, const double* a, int lda,
          const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasColMajor, a_op, b_op, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class T>
struct Operand {
  const char* name;
  const T* data;
  int rows, columns, leading;
  long long stride;

  bool has_leading() const { return leading >= std::max(1, rows); }
  bool is_on_device(int batch) const {
    if (!rows || !columns) return true;
    const size_t last = static_cast<size_t>(batch - 1) * static_cast<size_t>(stride);
    const size_t wanted = sizeof(T) * (last + size_t(columns - 1) * size_t(leading) + size_t(rows));
    if (room(data) >= wanted) return true;
    report(cudaErrorIllegalAddress,
           text("cublas gemm: operand ", name, " takes ", wanted, " bytes of device memory, and has ", room(data)));
    return false;
  }
};

template <class T>
cublasStatus_t batched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                       const T* alpha, const T* a, int lda, long long stride_a, const T* b, int ldb, long long stride_b,
                       const T* beta, T* c, int ldc, long long stride_c, int batch) {
  const bool a_plain = op_a == CUBLAS_OP_N, b_plain = op_b == CUBLAS_OP_N;
  const Operand<T> in_a{"A", a, a_plain ? m : k, a_plain ? k : m, lda, stride_a};
  const Operand<T> in_b{"B", b, b_plain ? k : n, b_plain ? n : k, ldb, stride_b};
  const Operand<T> out{"C", c, m, n, ldc, stride_c};
  if (m < 0 || n < 0 || k < 0 || batch < 0 || !in_a.has_leading() || !in_b.has_leading() || !out.has_leading())
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!m || !n || !batch) return CUBLAS_STATUS_SUCCESS;
  push(handle->stream, [=, alpha_now = *alpha, beta_now = *beta] {
    if (!in_a.is_on_device(batch) || !in_b.is_on_device(batch) || !out.is_on_device(batch)) return;
    const OnDevice open;
    for (int i = 0; i < batch; ++i)
      gemm(a_plain ? CblasNoTrans : CblasTrans, b_plain ? CblasNoTrans : CblasTrans, m, n, k, alpha_now,
           a + i * stride_a, lda, b + i * stride_b, ldb, beta_now, c + i * stride_c, ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_cpu

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cuda_on_cpu::Cublas;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const float* alpha, const float* a, int lda, long long stride_a,
                                         const float* b, int ldb, long long stride_b, const float* beta, float* c,
                                         int ldc, long long stride_c, int batch) {
  return cuda_on_cpu::batched(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                              stride_c, batch);
}
cublasStatus_t cublasDgemmStridedBatched(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                                         int n, int k, const double* alpha, const double* a, int lda,
                                         long long stride_a, const double* b, int ldb, long long stride_b,
                                         const double* beta, double* c, int ldc, long long stride_c, int batch) {
  return cuda_on_cpu::batched(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,
                              stride_c, batch);
}
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                           const float* alpha, const float* a, int lda, const float* b, int ldb, const float* beta,
                           float* c, int ldc) {
  return cuda_on_cpu::batched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,
                           const double* alpha, const double* a, int lda, const double* b, int ldb, const double* beta,
                           double* c, int ldc) {
  return cuda_on_cpu::batched(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);
}
