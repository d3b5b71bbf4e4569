// Kernels of the kinds that linnet needs, to try the emulation on; arrays lie row by row.
#pragma once
#include "linnet/core/cuda.h"

namespace kernels {

void softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream);
void layer_norm(const float* x, const float* weight, const float* bias, float* y, int rows, int columns, float eps,
                cudaStream_t stream);
/// The sum of n numbers in one launch: the block that finishes last adds up what the others left. `counter` holds 0.
void sum(const double* x, double* partial, unsigned* counter, double* total, int n, int blocks, cudaStream_t stream);
void cumulative_sum(const float* x, float* y, int rows, int columns, cudaStream_t stream);
void transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream);
/// c (m x n) = a (m x k) b (k x n)
void matmul(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream);
void axpy(float a, const float* x, float* y, size_t n, cudaStream_t stream);
/// table[ids[i]] += dy[i], row by row
void scatter_add(const int* ids, const float* dy, float* table, int rows, int columns, cudaStream_t stream);
/// Causal linear attention of q, k >= 0 and v, each (heads, time, 64); states holds linear_attention_states numbers.
size_t linear_attention_states(int heads, int time);
void linear_attention(const float* q, const float* k, const float* v, float* states, float* o, int heads, int time,
                      cudaStream_t stream);
/// scores v for causal scores q k^T, without a normaliser, of q, k, v (heads, 32, 16), on the tensor cores
void causal_product(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, float* o, int heads,
                    cudaStream_t stream);

}  // namespace kernels
