// A block a row: softmax, layer norm, cumulative sums; and the sum of everything.
#include "cuda_on_cpu/kernels/block_sum.h"
#include "cuda_on_cpu/kernels/kernels.h"

namespace kernels {
namespace {

__global__ void __launch_bounds__(128) softmax_rows(const float* x, float* y, int columns) {
  x += size_t{blockIdx.x} * columns;
  y += size_t{blockIdx.x} * columns;
  float most = -INFINITY, sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) most = fmaxf(most, x[j]);
  most = over_block<Max>(most);
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += expf(x[j] - most);
  sum = over_block<Sum>(sum);
  for (int j = threadIdx.x; j < columns; j += blockDim.x) y[j] = expf(x[j] - most) / sum;
}

__global__ void __launch_bounds__(128)
    layer_norm_rows(const float* x, const float* weight, const float* bias, float* y, int columns, float eps) {
  x += size_t{blockIdx.x} * columns;
  y += size_t{blockIdx.x} * columns;
  float sum = 0, squares = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += x[j];
  const float mean = over_block<Sum>(sum) / columns;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) squares += (x[j] - mean) * (x[j] - mean);
  const float scale = rsqrtf(over_block<Sum>(squares) / columns + eps);
  for (int j = threadIdx.x; j < columns; j += blockDim.x) y[j] = (x[j] - mean) * scale * weight[j] + bias[j];
}

__global__ void __launch_bounds__(128)
    sum_all(const double* x, double* partial, unsigned* counter, double* total, int n) {
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = over_block<Sum>(sum);
  CUDA_SHARED(bool, is_last, [1]);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    is_last[0] = atomicAdd(counter, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!is_last[0]) return;
  sum = 0;
  for (int i = threadIdx.x; i < int(gridDim.x); i += blockDim.x) sum += partial[i];
  sum = over_block<Sum>(sum);
  if (threadIdx.x == 0) *total = sum;
}

// Within a warp by shuffles, over the warps by shared memory, from stretch to stretch by a carry.
__global__ void __launch_bounds__(128) cumulative_sum_rows(const float* x, float* y, int columns) {
  CUDA_SHARED(float, of_warp, [4]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const size_t row = size_t{blockIdx.x} * columns;
  float carry = 0;
  for (int begin = 0; begin < columns; begin += blockDim.x) {
    const int j = begin + threadIdx.x;
    float sum = j < columns ? x[row + j] : 0;
    for (int by = 1; by < 32; by *= 2) {
      const float before = __shfl_up_sync(kWholeWarp, sum, by);
      if (lane >= by) sum += before;
    }
    if (lane == 31) of_warp[warp] = sum;
    __syncthreads();
    float all = 0;
    for (int w = 0; w < 4; ++w) {
      if (w < warp) sum += of_warp[w];
      all += of_warp[w];
    }
    if (j < columns) y[row + j] = carry + sum;
    carry += all;
    __syncthreads();  // of_warp is written again
  }
}

}  // namespace

void softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  launch(softmax_rows, rows, 128, 0, stream, x, y, columns);
}
void layer_norm(const float* x, const float* weight, const float* bias, float* y, int rows, int columns, float eps,
                cudaStream_t stream) {
  launch(layer_norm_rows, rows, 128, 0, stream, x, weight, bias, y, columns, eps);
}
void sum(const double* x, double* partial, unsigned* counter, double* total, int n, int blocks, cudaStream_t stream) {
  launch(sum_all, blocks, 128, 0, stream, x, partial, counter, total, n);
}
void cumulative_sum(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  launch(cumulative_sum_rows, rows, 128, 0, stream, x, y, columns);
}

}  // namespace kernels
