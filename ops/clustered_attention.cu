// Clustered attention on a GPU: clusters against keys by products of matrices, some heads at a time; a block chooses a
// cluster's top keys, a team of threads weighs them for a query.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/clustered_attention_slice_cuda.h"

namespace linnet::cuda {
namespace {

using clustered_attention_run::Call;
using clustered_attention_run::Found;
using clustered_attention_run::Inputs;

/// Unsigned numbers in the order of the floats; of 0 and -0 the same.
__device__ uint32_t rank_of(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x + 0.0f);
  return bits >> 31 ? ~bits : bits | uint32_t{1} << 31;
}
__device__ uint64_t rank_of(double x) {
  const auto bits = __builtin_bit_cast(uint64_t, x + 0.0);
  return bits >> 63 ? ~bits : bits | uint64_t{1} << 63;
}

/// The scores of a cluster with the keys that count.
template <class T>
struct Scores {
  const Slice<T>& slice;
  int64_t item;
  bool any;  // whether the cluster has members
  const T* s;

  __device__ bool counts(int64_t j) const { return any && slice.key(item, j); }
};

/// The `wanted`-th largest rank, by 8 bits at a time from the highest on; `wanted` becomes how many of those equal to
/// it are wanted. For a block.
template <class T, class Rank = decltype(rank_of(T()))>
__device__ Rank find_rank(const Scores<T>& scores, int32_t& wanted) {
  CUDA_SHARED(int, count, [kThreads]);
  CUDA_SHARED(int, chosen, [2]);
  const int digit = kThreads - 1 - threadIdx.x;  // the highest first
  Rank found = 0;
  for (int shift = 8 * sizeof(T) - 8; shift >= 0; shift -= 8) {
    count[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < scores.slice.n.keys; j += kThreads) {
      if (!scores.counts(j)) continue;
      const Rank rank = rank_of(scores.s[j]);
      if (rank >> shift >> 8 == found >> shift >> 8) atomicAdd(&count[rank >> shift & 255], 1);
    }
    __syncthreads();
    const int32_t here = count[digit];
    int32_t all;
    const int32_t before = sum_before(here, &all);
    if (before < wanted && wanted <= before + here) chosen[0] = digit, chosen[1] = wanted - before;
    __syncthreads();
    found |= static_cast<Rank>(chosen[0]) << shift;
    wanted = chosen[1];
  }
  return found;
}

/// A block a cluster: scores become softmax weights, 0 for the top keys, which `top` lists and whose weights are
/// `mass`. Causal: only `top`.
template <class T>
__global__ void __launch_bounds__(kThreads, 2)
    choose_kernel(Slice<T> slice, T* all_scores, int32_t* all_top, T* lse, T* mass) {
  const int64_t row = blockIdx.x, item = row / slice.clusters, keys = slice.n.keys, topk = slice.topk;
  T* const s = all_scores + row * keys;
  const Scores<T> scores{slice, item, slice.begin(row) < slice.end(row), s};
  T max = kNoKey<T>, sum = 0, top_sum = 0;
  int32_t allowed = 0;
  for (int64_t j = threadIdx.x; j < keys; j += kThreads) {
    if (!scores.counts(j)) continue;
    ++allowed;
    max = Larger()(max, s[j]);
  }
  max = over_block(max, Larger());
  allowed = over_block(allowed, Sum());
  const bool none = max == kNoKey<T>;
  for (int64_t j = threadIdx.x; !none && j < keys; j += kThreads)
    if (scores.counts(j)) sum += exp_nonpositive(s[j] - max);
  sum = over_block(sum, Sum());
  int32_t equal = static_cast<int32_t>(topk < allowed ? topk : allowed), placed = 0;
  const int32_t tops = equal;
  const auto least = tops > 0 ? find_rank(scores, equal) : 0;
  for (int64_t from = 0; from < keys; from += kThreads) {
    const int64_t j = from + threadIdx.x;
    const bool counts = j < keys && scores.counts(j);
    bool is_top = false;
    if (tops > 0) {
      const auto rank = counts ? rank_of(s[j]) : 0;
      const bool is_equal = counts && rank == least;
      int32_t equals, chosen;
      const int32_t before = sum_before<int32_t>(is_equal, &equals);
      is_top = counts && (rank > least || (is_equal && before < equal));
      equal -= equals;
      const int32_t place = placed + sum_before<int32_t>(is_top, &chosen);
      placed += chosen;
      if (is_top) all_top[row * topk + place] = static_cast<int32_t>(j);
    }
    if (slice.causal || j >= keys) continue;
    const T weight = counts && !none ? exp_nonpositive(s[j] - max) / sum : T(0);
    if (is_top) top_sum += weight;
    s[j] = is_top ? T(0) : weight;
  }
  for (int64_t t = tops + threadIdx.x; t < topk; t += kThreads) all_top[row * topk + t] = -1;
  if (slice.causal) return;
  top_sum = over_block(top_sum, Sum());
  if (threadIdx.x > 0) return;
  mass[row] = top_sum;
  lse[row] = none ? kNoKey<T> : max + log(sum);
}

/// p (queries, topk) = softmax over the top keys of each query's cluster, and lse (batch, heads, queries).
template <class T>
void weigh_own(const OwnKeys<T>& own, T* all_p, T* lse) {
  each_row(own.slice.all_queries(), own.slice.topk, [=] __device__(auto team, int64_t i) {
    const Slice<T>& slice = own.slice;
    const int64_t item = i / slice.n.queries, t = i % slice.n.queries, topk = slice.topk;
    T* const p = all_p + i * topk;
    const bool counts = slice.query(item, t);
    const int32_t* const top = counts ? own.of(item, t) : nullptr;
    const T* const q = slice.row(slice.q, item, t);
    T max = kNoKey<T>;
    for (int64_t at = team.place; at < topk; at += team.size) {
      const bool sees = counts && own.sees(t, top[at]);
      p[at] = sees ? slice.scale * dot(slice.n.dim, q, own.key(item, top[at])) : kNoKey<T>;
      max = Larger()(max, p[at]);
    }
    max = team.all(max, Larger());
    const bool none = max == kNoKey<T>;
    T sum = 0;
    for (int64_t at = team.place; at < topk; at += team.size) {
      p[at] = none ? T(0) : exp_nonpositive(p[at] - max);
      sum += p[at];
    }
    sum = team.all(sum, Sum());
    for (int64_t at = team.place; !none && at < topk; at += team.size) p[at] /= sum;
    if (team.place == 0) lse[slice.first * slice.n.queries + i] = none ? kNoKey<T> : max + log(sum);
  });
}

/// out = mass p v + what the cluster's other keys give.
template <class T>
void give_out(const OwnKeys<T>& own, const T* p, const T* mass, const T* shared, const CallRows<T>& out) {
  const int64_t width = own.slice.n.value_dim;
  each(own.slice.all_queries() * width, [=] __device__(int64_t i) {
    const Slice<T>& slice = own.slice;
    const int64_t m = i % width, query = i / width, item = query / slice.n.queries, t = query % slice.n.queries;
    if (!slice.query(item, t)) return;
    const int32_t* const top = own.of(item, t);
    const int64_t row = item * slice.clusters + slice.group(item, t);
    T sum = 0;
    for (int64_t at = 0; at < slice.topk; ++at)
      if (own.sees(t, top[at])) sum += p[query * slice.topk + at] * own.value(item, top[at])[m];
    slice.row(out, item, t)[m] = slice.causal ? sum : mass[row] * sum + shared[row * width + m];
  });
}

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Found& found) {
  const AttentionSizes& n = call.sizes;
  const int64_t clusters = call.clusters, topk = call.topk, keys = n.keys, width = n.value_dim;
  T* const cluster_lse = call.causal ? nullptr : found.cluster_lse.mutable_data<T>();
  T* const query_lse = topk > 0 ? found.query_lse.mutable_data<T>() : nullptr;
  int32_t* const top_all = found.top.mutable_data<int32_t>();
  const CallRows<T> to{out.mutable_data<T>(), rows_of(call.out_shape())};
  for_each_slice<T>(call, x, clusters * keys + n.queries * topk, [&](const Slice<T>& slice) {
    Prepared<T> packed(slice);
    Scratch<T> mass(slice.rows()), shared(slice.rows() * width), p(slice.all_queries() * topk);
    const int64_t before = slice.first * clusters;
    const OwnKeys<T> own{slice, top_all + before * topk, packed.k.data(), packed.v.data()};
    run(choose_kernel<T>, static_cast<unsigned>(slice.rows()), kThreads, 0, slice, packed.scores.data(),
        top_all + before * topk, cluster_lse ? cluster_lse + before : nullptr, mass.data());
    if (!call.causal)
      gemm_batched<T>(false, false, clusters, width, keys, packed.scores.data(), keys, clusters * keys, packed.v.data(),
                      width, keys * width, shared.data(), slice.count);
    if (topk > 0) weigh_own(own, p.data(), query_lse);
    give_out(own, p.data(), mass.data(), shared.data(), to);
  });
}

void forward(const Call& call, const Inputs& x, Tensor& out, Found& found) {
  with_float("clustered_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, found); });
}

}  // namespace

extern const ClusteredAttentionCalls clustered_attention_calls = {find_query_clusters, forward,
                                                                  clustered_attention_backward};

}  // namespace linnet::cuda
