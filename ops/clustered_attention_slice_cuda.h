// Some heads of a call of clustered attention on a GPU: what its kernels read, and the members of the clusters. Private
// to .cu files.
#pragma once
#include <algorithm>

#include "linnet/core/sort.h"
#include "linnet/ops/attention_pass_cuda.h"
#include "linnet/ops/clustered_attention_cuda.h"

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

}  // namespace linnet::cuda
