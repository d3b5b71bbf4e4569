// Clustered attention on a GPU: clusters against keys by products of matrices, some heads at a time; a block chooses a
// cluster's top keys, a team of threads weighs them for a query.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/general_cuda.h"
#include "linnet/ops/clustered_attention_slice_cuda.h"
#include "linnet/ops/row_teams.h"

namespace linnet::cuda {
namespace {

using clustered_attention_run::Call;
using clustered_attention_run::Found;
using clustered_attention_run::Inputs;

/// y (count, times, width) = those rows side by side, 0 where a step does not count and is not to be read.
template <class T>
void pack_keys(const Slice<T>& slice, const CallRows<const T>& rows, int64_t width, T* y) {
  const int64_t times = slice.n.keys;
  each(slice.count * times * width, [=] __device__(int64_t i) {
    const int64_t item = i / width / times, t = i / width % times;
    y[i] = slice.key(item, t) ? slice.row(rows, item, t)[i % width] : T(0);
  });
}

/// y (rows, width) = the sum of x over the members of each cluster, times `scale`, for the mean over how many they are.
template <class T>
void sum_members(const Slice<T>& slice, const CallRows<const T>& x, int64_t width, T scale, bool mean, T* y) {
  each(slice.rows() * width, [=] __device__(int64_t i) {
    const int64_t row = i / width, begin = slice.begin(row), end = slice.end(row);
    T sum = 0;
    for (int64_t at = begin; at < end; ++at)
      sum += slice.row(x, row / slice.clusters, slice.members[at] % slice.n.queries)[i % width];
    y[i] = begin == end ? T(0) : mean ? sum * (scale / static_cast<T>(end - begin)) : sum * scale;
  });
}

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

/// What a query's own weights are made of.
template <class T>
struct OwnKeys {
  Slice<T> slice;
  const int32_t* top;
  const T *k, *v;  // (count, keys, dim), (count, keys, value_dim)

  LINNET_FN const int32_t* of(int64_t item, int64_t t) const {
    return top + (item * slice.clusters + slice.group(item, t)) * slice.topk;
  }
  LINNET_FN const T* key(int64_t item, int32_t j) const { return k + (item * slice.n.keys + j) * slice.n.dim; }
  LINNET_FN const T* value(int64_t item, int32_t j) const { return v + (item * slice.n.keys + j) * slice.n.value_dim; }
  LINNET_FN bool sees(int64_t t, int32_t j) const { return j >= 0 && (!slice.causal || j <= t); }
};

template <class T>
LINNET_FN T dot(int64_t n, const T* a, const T* b) {
  T sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
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

/// The heads of a call, as many at a time as memory should be taken for; f(slice).
template <class T, class F>
void for_each_slice(const Call& call, const Inputs& x, int64_t numbers_a_head, F f) {
  const AttentionSizes& n = call.sizes;
  const int64_t all = n.batch * n.heads;
  if (n.queries == 0 || n.keys == 0) return;
  LINNET_CHECK(call.clusters < (int64_t{1} << 31) - 1 && n.queries < int64_t{1} << 31,
               "clustered_attention: ", call.clusters, " clusters of ", n.queries, " queries are too many on cuda");
  const int64_t limit = ((int64_t{1} << 31) - 1) / std::max(call.clusters + 1, n.queries);  // sorted by 32-bit numbers
  const int64_t most = heads_at_once(std::min(all, limit), numbers_a_head);
  for (int64_t first = 0; first < all; first += most) {
    Slice<T> slice{.n = n,
                   .first = first,
                   .count = std::min(most, all - first),
                   .clusters = call.clusters,
                   .topk = call.topk,
                   .causal = call.causal,
                   .scale = static_cast<T>(call.scale),
                   .key_mask = mask_of(x.keys),
                   .query_mask = mask_of(x.queries),
                   .groups = x.groups.data<int32_t>(),
                   .q = {x.q.data<T>(), call.q},
                   .k = {x.k.data<T>(), call.k},
                   .v = {x.v.data<T>(), call.v}};
    const SliceMembers members(slice);
    f(slice);
  }
}

/// What both ways begin with: keys and values side by side, and the clusters' scores.
template <class T>
struct Prepared {
  Scratch<T> k, v, means, scores;

  explicit Prepared(const Slice<T>& slice)
      : k(slice.count * slice.n.keys * slice.n.dim),
        v(slice.count * slice.n.keys * slice.n.value_dim),
        means(slice.rows() * slice.n.dim),
        scores(slice.rows() * slice.n.keys) {
    const auto& [batch, queries, keys, heads, dim, value_dim] = slice.n;
    pack_keys(slice, slice.k, dim, k.data());
    pack_keys(slice, slice.v, value_dim, v.data());
    sum_members(slice, slice.q, dim, slice.scale, true, means.data());
    gemm_batched<T>(false, true, slice.clusters, keys, dim, means.data(), dim, slice.clusters * dim, k.data(), dim,
                    keys * dim, scores.data(), slice.count);
  }
};

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

/// Of each query, with m the mass of its cluster and e = g . v: weights = m p, along = sum p e, slopes = m p (e -
/// along).
template <class T>
struct OwnSlopes {
  T *weights, *slopes;  // (queries, topk)
  T* along;             // (queries)
};
template <class T>
void slope_own(const OwnKeys<T>& own, const CallRows<const T>& g_all, const T* lse, const T* mass, OwnSlopes<T> to) {
  each_row(own.slice.all_queries(), own.slice.topk, [=] __device__(auto team, int64_t i) {
    const Slice<T>& slice = own.slice;
    const int64_t item = i / slice.n.queries, t = i % slice.n.queries, topk = slice.topk;
    T *const weights = to.weights + i * topk, *const slopes = to.slopes + i * topk;
    const T log_sum = lse[slice.first * slice.n.queries + i];
    const bool counts = slice.query(item, t) && log_sum != kNoKey<T>;
    const int32_t* const top = counts ? own.of(item, t) : nullptr;
    const T *const q = slice.row(slice.q, item, t), *const g = slice.row(g_all, item, t);
    T along = 0;
    for (int64_t at = team.place; at < topk; at += team.size) {
      weights[at] = slopes[at] = 0;
      if (!counts || !own.sees(t, top[at])) continue;
      weights[at] = exp_nonpositive(slice.scale * dot(slice.n.dim, q, own.key(item, top[at])) - log_sum);
      slopes[at] = dot(slice.n.value_dim, g, own.value(item, top[at]));
      along += weights[at] * slopes[at];
    }
    along = team.all(along, Sum());
    const T share = !counts ? T(0) : slice.causal ? T(1) : mass[item * slice.clusters + slice.group(item, t)];
    for (int64_t at = team.place; at < topk; at += team.size) {
      weights[at] *= share;
      slopes[at] = weights[at] * (slopes[at] - along);
    }
    if (team.place == 0) to.along[i] = along;
  });
}

/// places (rows, keys): where a key stands among the top ones of a cluster, -1 where it does not.
template <class T>
void find_places(const Slice<T>& slice, const int32_t* top, int32_t* places) {
  const int64_t keys = slice.n.keys, topk = slice.topk;
  each(slice.rows() * keys, [=] __device__(int64_t i) { places[i] = -1; });
  each(slice.rows() * topk, [=] __device__(int64_t i) {
    if (top[i] >= 0) places[i / topk * keys + top[i]] = static_cast<int32_t>(i % topk);
  });
}

/// Scores become softmax weights again; the mass of a cluster is that of its top keys.
template <class T>
void weigh_shared(const Slice<T>& slice, const T* lse, const int32_t* places, T* scores, T* mass) {
  each_row(slice.rows(), slice.n.keys, [=] __device__(auto team, int64_t row) {
    const int64_t item = row / slice.clusters, keys = slice.n.keys;
    T* const a = scores + row * keys;
    const bool none = lse[row] == kNoKey<T>;
    T sum = 0;
    for (int64_t j = team.place; j < keys; j += team.size) {
      a[j] = none || !slice.key(item, j) ? T(0) : exp_nonpositive(a[j] - lse[row]);
      if (places && places[row * keys + j] >= 0) sum += a[j];
    }
    sum = team.all(sum, Sum());
    if (team.place == 0) mass[row] = sum;
  });
}

/// dmass = the sum of along over the members.
template <class T>
void sum_along(const Slice<T>& slice, const T* along, T* dmass) {
  each(slice.rows(), [=] __device__(int64_t row) {
    T sum = 0;
    for (int64_t at = slice.begin(row); at < slice.end(row); ++at) sum += along[slice.members[at]];
    dmass[row] = sum;
  });
}

/// da (rows, keys) becomes a (da - sum a da), with dmass for the top keys' da; then their a becomes 0.
template <class T>
void slope_shared(const Slice<T>& slice, const int32_t* places, const T* dmass, T* weights, T* slopes) {
  each_row(slice.rows(), slice.n.keys, [=] __device__(auto team, int64_t row) {
    const int64_t keys = slice.n.keys;
    T *const a = weights + row * keys, *const da = slopes + row * keys;
    T along = 0;
    for (int64_t j = team.place; j < keys; j += team.size) {
      if (places && places[row * keys + j] >= 0) da[j] = dmass[row];
      if (a[j] != T(0)) along += a[j] * da[j];
    }
    along = team.all(along, Sum());
    for (int64_t j = team.place; j < keys; j += team.size) {
      da[j] = a[j] != T(0) ? a[j] * (da[j] - along) : T(0);
      if (places && places[row * keys + j] >= 0) a[j] = 0;
    }
  });
}

/// y (rows, topk, width) = scale times the sum of w x over the members, w (queries, topk).
template <class T>
void sum_top(const Slice<T>& slice, const T* w, const CallRows<const T>& x, int64_t width, T scale, T* y) {
  each(slice.rows() * slice.topk * width, [=] __device__(int64_t i) {
    const int64_t at = i / width % slice.topk, row = i / width / slice.topk;
    T sum = 0;
    for (int64_t member = slice.begin(row); member < slice.end(row); ++member) {
      const int64_t query = slice.members[member];
      sum += w[query * slice.topk + at] * slice.row(x, row / slice.clusters, query % slice.n.queries)[i % width];
    }
    y[i] = scale * sum;
  });
}

/// Adds a key's or value's gradient: what the clusters give, `shared` (count, keys, width), and what they give to it as
/// one of their top keys, `of_top` (rows, topk, width); null where there is none.
template <class T>
void add_to_keys(const Slice<T>& slice, const T* shared, const T* of_top, const int32_t* places, int64_t width,
                 const CallRows<T>& to) {
  const int64_t keys = slice.n.keys;
  each(slice.count * keys * width, [=] __device__(int64_t i) {
    const int64_t d = i % width, item = i / width / keys, j = i / width % keys;
    if (!slice.key(item, j)) return;
    T sum = shared ? shared[i] : T(0);
    for (int64_t row = item * slice.clusters; of_top && row < (item + 1) * slice.clusters; ++row) {
      const int32_t at = places[row * keys + j];
      if (at >= 0) sum += of_top[(row * slice.topk + at) * width + d];
    }
    slice.row(to, item, j)[d] += sum;
  });
}

/// dq += scale (slopes k + dqbar / how many share it), `dmeans` being dqbar, or null.
template <class T>
void add_to_queries(const OwnKeys<T>& own, const T* slopes, const T* dmeans, const CallRows<T>& to) {
  const int64_t dim = own.slice.n.dim;
  each(own.slice.all_queries() * dim, [=] __device__(int64_t i) {
    const Slice<T>& slice = own.slice;
    const int64_t d = i % dim, query = i / dim, item = query / slice.n.queries, t = query % slice.n.queries;
    if (!slice.query(item, t)) return;
    const int32_t* const top = own.of(item, t);
    const int64_t row = item * slice.clusters + slice.group(item, t);
    T sum = dmeans ? dmeans[row * dim + d] / static_cast<T>(slice.end(row) - slice.begin(row)) : T(0);
    for (int64_t at = 0; at < slice.topk; ++at)
      if (own.sees(t, top[at])) sum += slopes[query * slice.topk + at] * own.key(item, top[at])[d];
    slice.row(to, item, t)[d] += slice.scale * sum;
  });
}

/// The formulas of clustered_attention_run.cpp.
template <class T>
void run_backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor& dq, Tensor& dk,
                  Tensor& dv) {
  const AttentionSizes& n = call.sizes;
  const int64_t clusters = call.clusters, topk = call.topk, keys = n.keys, dim = n.dim, width = n.value_dim;
  const bool has_top = topk > 0, has_shared = !call.causal;
  const CallRows<const T> g{dy.data<T>(), rows_of(call.out_shape())};
  const CallRows<T> to_q{dq.mutable_data<T>(), call.q}, to_k{dk.mutable_data<T>(), call.k},
      to_v{dv.mutable_data<T>(), call.v};
  for_each_slice<T>(call, x, 3 * clusters * keys + 2 * n.queries * topk, [&](const Slice<T>& slice) {
    const int64_t before = slice.first * clusters, rows = slice.rows(), queries = slice.all_queries();
    Prepared<T> packed(slice);
    const OwnKeys<T> own{slice, found.top.data<int32_t>() + before * topk, packed.k.data(), packed.v.data()};
    Scratch<int32_t> place_memory(has_top ? rows * keys : 0);
    int32_t* const places = has_top ? place_memory.data() : nullptr;
    if (has_top) find_places(slice, own.top, places);
    Scratch<T> mass(rows), dmass(rows);
    if (has_shared)
      weigh_shared(slice, found.cluster_lse.data<T>() + before, places, packed.scores.data(), mass.data());

    Scratch<T> weights(queries * topk), slopes(queries * topk), along(queries);
    Scratch<T> top_k(rows * topk * dim), top_v(rows * topk * width);
    if (has_top) {
      slope_own(own, g, found.query_lse.data<T>(), mass.data(), {weights.data(), slopes.data(), along.data()});
      sum_top(slice, slopes.data(), slice.q, dim, slice.scale, top_k.data());
      sum_top(slice, weights.data(), g, width, T(1), top_v.data());
      sum_along(slice, along.data(), dmass.data());
    }

    Scratch<T> sums(rows * width), gradients(has_shared ? rows * keys : 0), dmeans(rows * dim);
    Scratch<T> shared_k(slice.count * keys * dim), shared_v(slice.count * keys * width);
    if (has_shared) {
      sum_members(slice, g, width, T(1), false, sums.data());
      gemm_batched<T>(false, true, clusters, keys, width, sums.data(), width, clusters * width, packed.v.data(), width,
                      keys * width, gradients.data(), slice.count);
      slope_shared(slice, places, dmass.data(), packed.scores.data(), gradients.data());
      gemm_batched<T>(true, false, keys, width, clusters, packed.scores.data(), keys, clusters * keys, sums.data(),
                      width, clusters * width, shared_v.data(), slice.count);
      gemm_batched<T>(true, false, keys, dim, clusters, gradients.data(), keys, clusters * keys, packed.means.data(),
                      dim, clusters * dim, shared_k.data(), slice.count);
      gemm_batched<T>(false, false, clusters, dim, keys, gradients.data(), keys, clusters * keys, packed.k.data(), dim,
                      keys * dim, dmeans.data(), slice.count);
    }
    add_to_queries(own, slopes.data(), has_shared ? dmeans.data() : nullptr, to_q);
    add_to_keys(slice, has_shared ? shared_k.data() : nullptr, has_top ? top_k.data() : nullptr, places, dim, to_k);
    add_to_keys(slice, has_shared ? shared_v.data() : nullptr, has_top ? top_v.data() : nullptr, places, width, to_v);
  });
}

void forward(const Call& call, const Inputs& x, Tensor& out, Found& found) {
  with_float("clustered_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, found); });
}
void backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor& dq, Tensor& dk,
              Tensor& dv) {
  with_float("clustered_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, found, dy, dq, dk, dv); });
}

}  // namespace

extern const ClusteredAttentionCalls clustered_attention_calls = {find_query_clusters, forward, backward};

}  // namespace linnet::cuda
