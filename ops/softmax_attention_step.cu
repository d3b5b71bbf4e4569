// One step of softmax attention on a GPU: a block for each head, over as many keys at a time as it has threads.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/math.h"
#include "linnet/core/warp.h"
#include "linnet/ops/softmax_attention_cuda.h"

namespace linnet::cuda {
namespace {

using softmax_attention_run::Call;
using softmax_attention_run::Inputs;

template <class T>
struct Step {
  int64_t heads, keys, dim, value_dim;
  const T *q, *k, *v;
  RowLayout q_at, k_at, v_at;
  const uint8_t *query_mask, *key_mask;
  T scale;
  T* o;
};

/// A thread weighs one key; then `width` of them add up one column of the values each, several a column where they are
/// fewer. Columns beyond the threads are another turn, with the weights made again.
template <class T>
__global__ void __launch_bounds__(kThreads) step_kernel(Step<T> step, int width) {
  CUDA_SHARED(T, weights, [kThreads]);
  const int64_t b = blockIdx.x / step.heads, h = blockIdx.x % step.heads;
  const T *const q = step.q + step.q_at.offset + b * step.q_at.batch + h * step.q_at.head,
                 *const k = step.k + b * step.k_at.batch + h * step.k_at.head,
                 *const v = step.v + b * step.v_at.batch + h * step.v_at.head;
  const uint8_t* const mask = step.key_mask ? step.key_mask + b * step.keys : nullptr;
  const int threads = blockDim.x, teams = threads / width, team = threadIdx.x / width;
  const T none = -static_cast<T>(__builtin_inf());
  const int64_t keys = step.query_mask && !step.query_mask[b] ? 0 : step.keys;
  for (int64_t first = 0; first < step.value_dim; first += width) {
    const int64_t column = first + threadIdx.x % width;
    T max = none, total = 0, sum = 0;
    for (int64_t begin = 0; begin < keys; begin += threads) {
      const int64_t j = begin + threadIdx.x;
      const bool counts = j < keys && (!mask || mask[j]);
      T score = 0;
      for (int64_t d = 0; counts && d < step.dim; ++d) score += q[d] * k[j * step.k_at.row + d];
      score *= step.scale;
      T top = over_block(counts && score > max ? score : max, Larger());
      const T shrink = max == none ? T(0) : exp_nonpositive(max - top);
      const T weight = counts ? exp_nonpositive(score - top) : T(0);
      max = top;
      total = total * shrink + weight;
      sum *= shrink;
      weights[threadIdx.x] = weight;
      __syncthreads();
      const int n = keys - begin < threads ? static_cast<int>(keys - begin) : threads;
      for (int i = team; team < teams && column < step.value_dim && i < n; i += teams)
        if (weights[i] != T(0))
          sum += weights[i] * v[(begin + i) * step.v_at.row + column];  // a masked row is not read
      __syncthreads();
    }
    total = over_block(total, Sum());
    weights[threadIdx.x] = sum;
    __syncthreads();
    if (team == 0 && column < step.value_dim) {
      for (int other = 1; other < teams; ++other) sum += weights[other * width + threadIdx.x];
      step.o[blockIdx.x * step.value_dim + column] = total == T(0) ? T(0) : sum / total;
    }
    __syncthreads();
  }
}

template <class T>
void run_step(const Call& call, const Inputs& x, const Tensor& k, const Tensor& v, Tensor& out) {
  const AttentionSizes& n = call.sizes;
  const auto mask = [](const Tensor& steps) { return steps.defined() ? steps.data<uint8_t>() : nullptr; };
  const unsigned width = threads_for(n.value_dim), threads = threads_for(n.keys > n.value_dim ? n.keys : n.value_dim);
  LINNET_CHECK(n.batch * n.heads < int64_t{1} << 31, "softmax_attention_step: ", n.batch * n.heads,
               " heads are too many for one launch on cuda");
  if (n.value_dim == 0) return;
  run(step_kernel<T>, static_cast<unsigned>(n.batch * n.heads), threads, 0,
      Step<T>{.heads = n.heads,
              .keys = n.keys,
              .dim = n.dim,
              .value_dim = n.value_dim,
              .q = x.q.data<T>(),
              .k = k.data<T>(),
              .v = v.data<T>(),
              .q_at = call.q,
              .k_at = rows_of(k.shape()),
              .v_at = rows_of(v.shape()),
              .query_mask = mask(x.queries),
              .key_mask = mask(x.keys),
              .scale = static_cast<T>(call.scale),
              .o = out.mutable_data<T>()},
      static_cast<int>(width));
}

}  // namespace

void softmax_attention_step(const Call& call, const Inputs& x, const Tensor& k, const Tensor& v, Tensor& out) {
  with_float("softmax_attention_step", x.q.dtype(), [&]<class T>() { run_step<T>(call, x, k, v, out); });
}

}  // namespace linnet::cuda
