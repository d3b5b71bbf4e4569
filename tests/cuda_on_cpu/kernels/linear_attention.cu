// Causal linear attention in chunks of 32 rows, and a piece of it on the tensor cores.
#include "cuda_on_cpu/kernels/kernels.h"

namespace kernels {
namespace {

// A state is S (D x M) with the sums of the keys, z, as one column more: kWide numbers a row.
constexpr int kRows = 32, kDim = 64, kWide = kDim + 1, kState = kDim * kWide;
constexpr size_t kBytes = sizeof(float) * (2 * kRows * kWide + kRows * kWide + kRows * (kRows + 1));

__device__ size_t first_number(int time) { return (size_t{blockIdx.y} * time + size_t{blockIdx.x} * kRows) * kDim; }

// 1. What each chunk adds to the state.
__global__ void __launch_bounds__(128) chunk_states(const float* k, const float* v, float* states, int time) {
  const size_t begin = first_number(time);
  const int rows = min(kRows, time - int(blockIdx.x) * kRows);
  float* state = states + (size_t{blockIdx.y} * gridDim.x + blockIdx.x) * kState;
  for (int i = threadIdx.x; i < kState; i += blockDim.x) {
    const int d = i / kWide, m = i % kWide;
    float sum = 0;
    for (int r = 0; r < rows; ++r) sum += k[begin + r * kDim + d] * (m < kDim ? v[begin + r * kDim + m] : 1);
    state[i] = sum;
  }
}

// 2. What lies before each chunk: an exclusive sum, number by number.
__global__ void __launch_bounds__(128) sum_states(float* states, int chunks) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= kState) return;
  float before = 0;
  for (int c = 0; c < chunks; ++c) {
    float& at = states[(size_t{blockIdx.y} * chunks + c) * kState + i];
    const float own = at;
    at = before;
    before += own;
  }
}

// 3. o = (tril(q k^T) v + q S) / (tril(q k^T) 1 + q z)
__global__ void __launch_bounds__(128)
    chunk_outputs(const float* q, const float* k, const float* v, const float* states, float* o, int time) {
  CUDA_DYNAMIC_SHARED(float, q_rows);      // [kRows][kWide]
  float* k_rows = q_rows + kRows * kWide;  // [kRows][kWide], later the numerators
  float* v_rows = k_rows + kRows * kWide;  // [kRows][kWide], a column of ones at the end
  float* scores = v_rows + kRows * kWide;  // [kRows][kRows + 1]
  const size_t begin = first_number(time);
  const int rows = min(kRows, time - int(blockIdx.x) * kRows);
  for (int i = threadIdx.x; i < kRows * kDim; i += blockDim.x) {
    const int r = i / kDim, d = i % kDim;
    q_rows[r * kWide + d] = r < rows ? q[begin + i] : 0;
    k_rows[r * kWide + d] = r < rows ? k[begin + i] : 0;
    v_rows[r * kWide + d] = r < rows ? v[begin + i] : 0;
    if (d == 0) v_rows[r * kWide + kDim] = 1;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kRows * kRows; i += blockDim.x) {
    const int r = i / kRows, j = i % kRows;
    float sum = 0;
    for (int d = 0; d < kDim && j <= r; ++d) sum += q_rows[r * kWide + d] * k_rows[j * kWide + d];
    scores[r * (kRows + 1) + j] = sum;
  }
  __syncthreads();
  const float* state = states + (size_t{blockIdx.y} * gridDim.x + blockIdx.x) * kState;
  for (int i = threadIdx.x; i < kRows * kWide; i += blockDim.x) {
    const int r = i / kWide, m = i % kWide;
    float sum = 0;
    for (int j = 0; j <= r; ++j) sum += scores[r * (kRows + 1) + j] * v_rows[j * kWide + m];
    for (int d = 0; d < kDim; ++d) sum += q_rows[r * kWide + d] * state[d * kWide + m];
    k_rows[i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < rows * kDim; i += blockDim.x)
    o[begin + i] = k_rows[i / kDim * kWide + i % kDim] / k_rows[i / kDim * kWide + kDim];
}

namespace wm = nvcuda::wmma;
using Bf16 = __nv_bfloat16;
using LeftTile = wm::fragment<wm::matrix_a, 16, 16, 16, Bf16, wm::row_major>;
using RightTile = wm::fragment<wm::matrix_b, 16, 16, 16, Bf16, wm::row_major>;
using TurnedTile = wm::fragment<wm::matrix_b, 16, 16, 16, Bf16, wm::col_major>;
using SumTile = wm::fragment<wm::accumulator, 16, 16, 16, float>;

// A head a block, 16 rows a warp.
__global__ void __launch_bounds__(64) causal_tiles(const Bf16* q, const Bf16* k, const Bf16* v, float* o) {
  CUDA_SHARED(float, sums, [2][256]);
  CUDA_SHARED(Bf16, scores, [2][256]);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const size_t begin = size_t{blockIdx.x} * 32 * 16;
  LeftTile left;
  SumTile out;
  wm::fill_fragment(out, 0.f);
  for (int c = 0; c <= warp; ++c) {  // tiles of keys up to the diagonal
    SumTile products;
    TurnedTile keys;
    RightTile values;
    wm::fill_fragment(products, 0.f);
    wm::load_matrix_sync(left, q + begin + warp * 256, 16);
    wm::load_matrix_sync(keys, k + begin + c * 256, 16);
    wm::mma_sync(products, left, keys, products);
    wm::store_matrix_sync(sums[warp], products, 16, wm::mem_row_major);
    __syncwarp();
    for (int i = lane; i < 256; i += 32) {
      const bool is_allowed = c < warp || i % 16 <= i / 16;
      scores[warp][i] = __float2bfloat16(is_allowed ? sums[warp][i] : 0.f);
    }
    __syncwarp();
    wm::load_matrix_sync(left, scores[warp], 16);
    wm::load_matrix_sync(values, v + begin + c * 256, 16);
    wm::mma_sync(out, left, values, out);
  }
  wm::store_matrix_sync(o + begin + warp * 256, out, 16, wm::mem_row_major);
}

int chunks(int time) { return (time + kRows - 1) / kRows; }

}  // namespace

size_t linear_attention_states(int heads, int time) { return size_t(heads) * chunks(time) * kState; }

void linear_attention(const float* q, const float* k, const float* v, float* states, float* o, int heads, int time,
                      cudaStream_t stream) {
  launch(chunk_states, dim3(chunks(time), heads), 128, 0, stream, k, v, states, time);
  launch(sum_states, dim3((kState + 127) / 128, heads), 128, 0, stream, states, chunks(time));
  launch(chunk_outputs, dim3(chunks(time), heads), 128, kBytes, stream, q, k, v, states, o, time);
}

void causal_product(const Bf16* q, const Bf16* k, const Bf16* v, float* o, int heads, cudaStream_t stream) {
  launch(causal_tiles, heads, 64, 0, stream, q, k, v, o);
}

}  // namespace kernels
