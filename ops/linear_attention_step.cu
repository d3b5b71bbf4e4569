// One step of linear attention on a GPU, and what a step reads.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/warp.h"
#include "linnet/ops/linear_attention_scan.h"

namespace linnet::cuda {
namespace {

constexpr int kColumns = 32, kMostLines = 8;  // threads of a block: columns by lines of the state

/// A block a head: the state streams by once.
template <class T>
__global__ void __launch_bounds__(kColumns* kMostLines) step_kernel(LinearAttentionCallForward<T> p) {
  CUDA_SHARED(T, sums, [kMostLines][kColumns]);
  const Head<T> head(blockIdx.x, p.heads, p.smallest);
  const int lane = threadIdx.x % kColumns, line = threadIdx.x / kColumns, lines = blockDim.x / kColumns;
  const bool is_key = p.k.data && (!p.key_mask || p.key_mask[head.b]);
  const bool is_query = !p.query_mask || p.query_mask[head.b];
  const T *const q = head.row(p.q, 0), *const k = is_key ? head.row(p.k, 0) : nullptr;
  T *const s = p.s + blockIdx.x * p.dim * p.value_dim, *const z = p.z + blockIdx.x * p.dim;
  T denominator = 0;
  for (int64_t d = threadIdx.x; d < p.dim; d += blockDim.x) {
    T sum = z[d];
    if (is_key) z[d] = sum += phi(p.map, k[d]);
    if (is_query) denominator += phi(p.map, q[d]) * sum;
  }
  denominator = over_block(denominator, Sum());
  denominator = p.normalise ? denominator + p.eps : T(1);
  const bool none = !is_query || abs(denominator) < p.smallest;
  for (int64_t first = 0; first < p.value_dim; first += kColumns) {
    const int64_t m = first + lane;
    const bool is_column = m < p.value_dim;
    const T v = is_key && is_column ? head.row(p.v, 0)[m] : T(0);
    T sum = 0;
    for (int64_t d = line; d < p.dim && is_column; d += lines) {
      T at = s[d * p.value_dim + m];
      if (is_key) s[d * p.value_dim + m] = at += phi(p.map, k[d]) * v;
      if (is_query) sum += phi(p.map, q[d]) * at;
    }
    sums[line][lane] = sum;
    __syncthreads();
    if (line == 0 && is_column) {
      for (int l = 1; l < lines; ++l) sum += sums[l][lane];
      p.o[blockIdx.x * p.value_dim + m] = none ? T(0) : sum / denominator;
    }
    __syncthreads();
  }
}

}  // namespace

template <class T>
void step(const LinearAttentionCallForward<T>& p) {
  const unsigned lines = p.dim < kMostLines ? static_cast<unsigned>(p.dim > 1 ? p.dim : 1) : kMostLines;
  run(step_kernel<T>, static_cast<unsigned>(p.batch * p.heads), kColumns * lines, 0, p);
}

template void step(const LinearAttentionCallForward<float>&);
template void step(const LinearAttentionCallForward<double>&);

}  // namespace linnet::cuda
