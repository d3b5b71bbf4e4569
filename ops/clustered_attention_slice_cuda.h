// Some heads of a call of clustered attention on a GPU: what its kernels read, the members of the clusters, and what
// both ways begin with. Private to .cu files.
#pragma once
#include <algorithm>

#include "linnet/core/general_cuda.h"
#include "linnet/core/sort.h"
#include "linnet/ops/attention_pass_cuda.h"
#include "linnet/ops/clustered_attention_cuda.h"
#include "linnet/ops/row_teams.h"

namespace linnet::cuda {

/// How many of `all` heads to work on at a time, of so many numbers of scratch memory each.
inline int64_t heads_at_once(int64_t all, int64_t numbers) {
  constexpr int64_t kMost = int64_t{1} << 26;
  return std::max<int64_t>(1, std::min(all, kMost / std::max<int64_t>(1, numbers)));
}

/// `count` heads from number `first` on; head h of sample b has number b heads + h, and within the slice `item` less
/// `first`.
template <class T>
struct Slice {
  AttentionSizes n;
  int64_t first = 0, count = 0, clusters = 1, topk = 0;
  bool causal = false;
  T scale = 1;
  const uint8_t *key_mask = nullptr, *query_mask = nullptr;
  const int32_t* groups = nullptr;
  CallRows<const T> q, k, v;
  // Of the slice: the queries item * n.queries + step, cluster after cluster; where those of cluster c of an item
  // begin, at item (clusters + 1) + c; those that a mask leaves out are the cluster `clusters`.
  const int32_t *members = nullptr, *begins = nullptr;

  LINNET_FN int64_t sample(int64_t item) const { return (first + item) / n.heads; }
  LINNET_FN int64_t head(int64_t item) const { return (first + item) % n.heads; }
  LINNET_FN bool key(int64_t item, int64_t t) const { return !key_mask || key_mask[sample(item) * n.keys + t]; }
  LINNET_FN bool query(int64_t item, int64_t t) const {
    return !query_mask || query_mask[sample(item) * n.queries + t];
  }
  LINNET_FN int64_t group(int64_t item, int64_t t) const {
    return groups[(sample(item) * n.queries + t) * n.heads + head(item)];
  }
  template <class Number>
  LINNET_FN Number* row(const CallRows<Number>& of, int64_t item, int64_t t) const {
    return of.of(sample(item), head(item)).at(t);
  }
  // Row `row` counts the clusters of all items.
  LINNET_FN int64_t begin(int64_t row) const { return begins[row + row / clusters]; }
  LINNET_FN int64_t end(int64_t row) const { return begins[row + row / clusters + 1]; }
  LINNET_FN int64_t rows() const { return count * clusters; }
  LINNET_FN int64_t all_queries() const { return count * n.queries; }
};

/// keys[i] = the place of query i's cluster among all of the slice.
template <class T>
void make_member_keys(const Slice<T>& slice, int32_t* keys) {
  each(slice.all_queries(), [=] __device__(int64_t i) {
    const int64_t item = i / slice.n.queries, t = i % slice.n.queries;
    const int64_t cluster = slice.query(item, t) ? slice.group(item, t) : slice.clusters;
    keys[i] = static_cast<int32_t>(item * (slice.clusters + 1) + cluster);
  });
}

/// begins[key] = the first place of that key, or of the next that there is.
template <class T>
void find_begins(const Slice<T>& slice, const int32_t* sorted, int32_t* begins) {
  const int64_t n = slice.all_queries(), all = slice.count * (slice.clusters + 1);
  each(n + 1, [=] __device__(int64_t i) {
    const int64_t from = i > 0 ? sorted[i - 1] + 1 : 0, to = i < n ? sorted[i] : all;
    for (int64_t key = from; key <= to; ++key) begins[key] = static_cast<int32_t>(i);
  });
}

/// The memory of a slice's members.
class SliceMembers {
 public:
  template <class T>
  explicit SliceMembers(Slice<T>& slice)
      : members_(slice.all_queries()), begins_(slice.count * (slice.clusters + 1) + 1) {
    const int64_t n = slice.all_queries();
    Scratch<int32_t> keys(n), sorted(n);
    make_member_keys(slice, keys.data());
    sort(n, slice.count * (slice.clusters + 1), keys.data(), sorted.data(), members_.data());
    find_begins(slice, sorted.data(), begins_.data());
    slice.members = members_.data();
    slice.begins = begins_.data();
  }

 private:
  Scratch<int32_t> members_, begins_;
};

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

/// The heads of a call, as many at a time as memory should be taken for; f(slice).
template <class T, class F>
void for_each_slice(const clustered_attention_run::Call& call, const clustered_attention_run::Inputs& x,
                    int64_t numbers_a_head, F f) {
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

}  // namespace linnet::cuda
