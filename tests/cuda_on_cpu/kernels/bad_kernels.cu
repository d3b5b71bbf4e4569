// Each kernel lacks something, or does something wrong, at the lines marked `bad: NAME`.
#include "cuda_on_cpu/kernels/bad_kernels.h"

#include "cuda_on_cpu/kernels/block_sum.h"

namespace kernels {
namespace {

// All but the wanted barrier are there: y is x in reverse.
__global__ void no_sync_after_write(const float* x, float* y) {
  CUDA_SHARED(float, all, [64]);
  all[threadIdx.x] = x[threadIdx.x];       // bad: no_sync_after_write
  y[threadIdx.x] = all[63 - threadIdx.x];  // bad: no_sync_after_write
}

// y = 4 times the sum of x: the next round writes of_warp while others still read it.
__global__ void no_sync_before_reuse(const float* x, float* y) {
  CUDA_SHARED(float, of_warp, [2]);
  float total = 0;
  for (int round = 1; round <= 4; ++round) {
    const float sum = over_warp<Sum>(x[threadIdx.x]);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = round * sum;  // bad: no_sync_before_reuse
    __syncthreads();
    total += (of_warp[0] + of_warp[1]) / round;  // bad: no_sync_before_reuse
  }
  y[threadIdx.x] = total;
}

// y = x times an 8 x 8 matrix of ones, in two steps of a tile.
__global__ void no_sync_in_matmul(const float* x, float* y) {
  CUDA_SHARED(float, tile, [8][4]);
  const int row = threadIdx.x / 8, column = threadIdx.x % 8;
  float sum = 0;
  for (int begin = 0; begin < 8; begin += 4) {
    if (column < 4) tile[row][column] = x[row * 8 + begin + column];  // bad: no_sync_in_matmul
    __syncthreads();
    for (int i = 0; i < 4; ++i) sum += tile[row][i];  // bad: no_sync_in_matmul
  }
  y[threadIdx.x] = sum;
}

// Four blocks: y = 1 + 4 x
__global__ void no_atomic(const float* x, float* y) {
  y[threadIdx.x] += x[threadIdx.x];  // bad: no_atomic
}

// Four blocks; the last to come adds up. y = 4 x[0]
__global__ void no_fence(const float* x, float* y) {
  unsigned* counter = reinterpret_cast<unsigned*>(y + 63);
  if (threadIdx.x != 0) return;
  y[blockIdx.x] = x[0];  // bad: no_fence
  if (atomicAdd(counter, 1u) != 3) return;
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += y[i];  // bad: no_fence
  y[32] = sum;
}

// Four blocks; each adds what the one before it has left, behind a barrier of its own.
__global__ void no_order_of_blocks(const float* x, float* y) {
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = x[0] + (blockIdx.x ? y[blockIdx.x - 1] : 0);  // bad: no_order_of_blocks
  __syncthreads();
}

__global__ void shared_past_end(const float* x, float* y) {
  CUDA_SHARED(float, all, [64]);
  all[threadIdx.x + 1] = x[threadIdx.x];  // bad: shared_past_end
  __syncthreads();
  y[threadIdx.x] = all[threadIdx.x];
}

__global__ void dynamic_shared_past_end(const float* x, float* y) {
  CUDA_DYNAMIC_SHARED(float, all);
  all[threadIdx.x + 1] = x[threadIdx.x];  // bad: dynamic_shared_past_end
  __syncthreads();
  y[threadIdx.x] = all[threadIdx.x];
}

__global__ void global_past_end(const float* x, float* y) {
  y[threadIdx.x + 1] = x[threadIdx.x];  // bad: global_past_end
}

__global__ void global_read_past_end(const float* x, float* y) {
  y[threadIdx.x] = x[threadIdx.x + 1];  // bad: global_read_past_end
}

__global__ void divergent_barrier(const float* x, float* y) {
  if (threadIdx.x < 16)
    __syncthreads();  // bad: divergent_barrier
  else
    __syncthreads();  // bad: divergent_barrier
  y[threadIdx.x] = x[threadIdx.x];
}

// Lane 0 waits for its warp at a barrier, and the others for lane 0 in a shuffle.
__global__ void barrier_and_shuffle(const float* x, float* y) {
  if (threadIdx.x % 32 == 0) __syncthreads();  // bad: barrier_and_shuffle
  y[threadIdx.x] = over_warp<Sum>(x[threadIdx.x]);
  __syncthreads();
}

__global__ void absent_lanes(const float* x, float* y) {
  float value = x[threadIdx.x];
  if (threadIdx.x % 32 < 16) value += __shfl_down_sync(kWholeWarp, value, 8);  // bad: absent_lanes
  y[threadIdx.x] = value;
}

__global__ void mask_without_caller(const float* x, float* y) {
  y[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 0);  // bad: mask_without_caller
}

__global__ void lock_step(const float* x, float* y) {
  CUDA_SHARED(float, all, [64]);
  all[threadIdx.x] = x[threadIdx.x];      // bad: lock_step
  y[threadIdx.x] = all[threadIdx.x ^ 1];  // bad: lock_step
}

// y = the first 64 numbers of the product of a matrix of ones and itself, 16
__global__ void wmma_lock_step(const float* x, float* y) {
  namespace wm = nvcuda::wmma;
  CUDA_SHARED(__nv_bfloat16, ones, [256]);
  CUDA_SHARED(float, product, [256]);
  wm::fragment<wm::matrix_a, 16, 16, 16, __nv_bfloat16, wm::row_major> a;
  wm::fragment<wm::matrix_b, 16, 16, 16, __nv_bfloat16, wm::row_major> b;
  wm::fragment<wm::accumulator, 16, 16, 16, float> sums;
  for (int i = threadIdx.x; i < 256; i += 32) ones[i] = __float2bfloat16(x[0] > 0 ? 1.f : 0.f);  // bad: wmma_lock_step
  wm::load_matrix_sync(a, ones, 16);
  wm::load_matrix_sync(b, ones, 16);
  wm::fill_fragment(sums, 0.f);
  wm::mma_sync(sums, a, b, sums);
  wm::store_matrix_sync(product, sums, 16, wm::mem_row_major);
  __syncwarp();
  y[threadIdx.x] = product[threadIdx.x];
}

__global__ void unwritten_shared(const float* x, float* y) {
  CUDA_SHARED(float, all, [64]);
  if (threadIdx.x > 0) all[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = all[threadIdx.x];
}

struct BadKernel {
  const char* name;
  void (*kernel)(const float*, float*);
  int blocks, threads, bytes;
};
const BadKernel kBad[] = {
    {"no_sync_after_write", no_sync_after_write, 1, 64, 0},
    {"no_sync_before_reuse", no_sync_before_reuse, 1, 64, 0},
    {"no_sync_in_matmul", no_sync_in_matmul, 1, 64, 0},
    {"no_atomic", no_atomic, 4, 64, 0},
    {"no_fence", no_fence, 4, 64, 0},
    {"no_order_of_blocks", no_order_of_blocks, 4, 64, 0},
    {"shared_past_end", shared_past_end, 1, 64, 0},
    {"dynamic_shared_past_end", dynamic_shared_past_end, 1, 64, 256},
    {"global_past_end", global_past_end, 1, 64, 0},
    {"global_read_past_end", global_read_past_end, 1, 64, 0},
    {"divergent_barrier", divergent_barrier, 1, 64, 0},
    {"barrier_and_shuffle", barrier_and_shuffle, 1, 64, 0},
    {"absent_lanes", absent_lanes, 1, 64, 0},
    {"mask_without_caller", mask_without_caller, 1, 64, 0},
    {"lock_step", lock_step, 1, 64, 0},
    {"wmma_lock_step", wmma_lock_step, 1, 32, 0},
    {"unwritten_shared", unwritten_shared, 1, 64, 0},
};

}  // namespace

bool launch_bad(const std::string& name, const float* x, float* y, cudaStream_t stream) {
  for (const BadKernel& bad : kBad)
    if (name == bad.name) {
      launch(bad.kernel, bad.blocks, bad.threads, size_t(bad.bytes), stream, x, y);
      return true;
    }
  return false;
}

}  // namespace kernels
