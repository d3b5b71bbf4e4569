// The way back of clustered attention on a GPU; ops/clustered_attention_run.cpp has its formulas.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/ops/clustered_attention_slice_cuda.h"

namespace linnet::cuda {
namespace {

using clustered_attention_run::Call;
using clustered_attention_run::Found;
using clustered_attention_run::Inputs;

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
    const int64_t shared_rows = has_shared ? rows : 0, shared_keys = has_shared ? slice.count * keys : 0;
    Scratch<T> mass(shared_rows), dmass(rows);
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

    Scratch<T> sums(shared_rows * width), gradients(shared_rows * keys), dmeans(shared_rows * dim);
    Scratch<T> shared_k(shared_keys * dim), shared_v(shared_keys * width);
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

}  // namespace

void clustered_attention_backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor& dq,
                                  Tensor& dk, Tensor& dv) {
  with_float("clustered_attention", x.q.dtype(), [&]<class T>() { run_backward<T>(call, x, found, dy, dq, dk, dv); });
}

}  // namespace linnet::cuda
