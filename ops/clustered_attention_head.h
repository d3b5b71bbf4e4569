// What the passes of clustered attention share: the rows of one head, its scores and the products between them.
// Private to ops/.
#pragma once
#include <cmath>
#include <limits>
#include <numeric>

#include "linnet/core/kernels.h"
#include "linnet/ops/clustered_attention_run.h"
#include "linnet/ops/packed_rows.h"
#include "linnet/ops/softmax_attention_tile.h"

namespace linnet::clustered_attention_run {

constexpr int64_t kRows = 64;  // clusters, or queries of one cluster, at a time

template <class T>
inline constexpr T kNone = -std::numeric_limits<T>::infinity();

/// s = exp(s - lse), and 0 for every s of -infinity. Returns lse, the log of the sum of exponentials.
template <class T>
T softmax_row(int64_t n, T* s) {
  const T max = n > 0 ? *std::max_element(s, s + n) : kNone<T>;
  if (max == kNone<T>) {
    std::fill_n(s, n, T(0));
    return max;
  }
  T sum = 0;
  for (int64_t j = 0; j < n; ++j) sum += s[j] = std::exp(s[j] - max);
  for (int64_t j = 0; j < n; ++j) s[j] /= sum;
  return max + std::log(sum);
}

/// What one thread works with on one head.
template <class T>
struct Head {
  const Call& call;
  const GeneralKernels<T>& general;
  softmax_attention_run::Steps keys;  // the steps that are allowed as keys
  PackedRows<T> q, k, v;              // of the members, cluster after cluster, and of the keys
  PackedRows<T> means;                // of the queries of a block of clusters, times the scale
  PackedRows<T> top_k, top_v;         // of the top keys of one cluster
  std::vector<T> weights, member_weights;

  Head(const Call& c, Device device)
      : call(c),
        general(general_kernels<T>(device)),
        q(c.sizes.dim),
        k(c.sizes.dim),
        v(c.sizes.value_dim),
        means(c.sizes.dim),
        top_k(c.sizes.dim),
        top_v(c.sizes.value_dim) {}

  void begin(const Inputs& x, const Members& members, int64_t b, int64_t h) {
    keys = softmax_attention_run::allowed_steps(x.keys, b, call.sizes.keys);
    q.gather(x.q.data<T>() + call.q.at(b, h), call.q.row, members.steps);
    k.gather(x.k.data<T>() + call.k.at(b, h), call.k.row, keys);
    v.gather(x.v.data<T>() + call.v.at(b, h), call.v.row, keys);
  }
  int64_t key_count() const { return std::ssize(keys); }
  int64_t top_count() const { return std::min(call.topk, key_count()); }

  /// weights = scale means k^T for a block of clusters.
  void score_clusters(const Members& members, const int64_t* clusters, int64_t rows) {
    means.clear(rows);
    for (int64_t r = 0; r < rows; ++r) {
      const T share = static_cast<T>(call.scale) / static_cast<T>(members.count(clusters[r]));
      for (int64_t i = members.begin[size_t(clusters[r])]; i < members.begin[size_t(clusters[r] + 1)]; ++i)
        add_scaled(means.width, share, q.row(i), means.row(r));
    }
    weights.resize(static_cast<size_t>(rows * key_count()));
    times_transposed(rows, means.row(0), k, T(1), weights);
  }
  /// The rows of the top keys of one cluster.
  void gather_top(const int32_t* top) {
    const std::span<const int32_t> places(top, static_cast<size_t>(top_count()));
    top_k.gather(k.row(0), k.width, places);
    top_v.gather(v.row(0), v.width, places);
  }
  /// member_weights = scale q k^T of the members from `first` on against the top keys, -infinity for what is later.
  void score_members(const Members& members, int64_t first, int64_t rows, const int32_t* top) {
    const int64_t n = top_count();
    member_weights.resize(static_cast<size_t>(rows * n));
    times_transposed(rows, q.row(first), top_k, static_cast<T>(call.scale), member_weights);
    for (int64_t r = 0; call.causal && r < rows; ++r)
      for (int64_t c = 0; c < n; ++c)
        if (keys[size_t(top[c])] > members.steps[size_t(first + r)]) member_weights[size_t(r * n + c)] = kNone<T>;
  }

  /// s = alpha a b^T for `rows` rows of a against all of b.
  void times_transposed(int64_t rows, const T* a, PackedRows<T>& b, T alpha, std::vector<T>& s) {
    const int64_t n = std::ssize(s) / std::max<int64_t>(rows, 1), width = std::max<int64_t>(b.width, 1);
    general.gemm(false, true, rows, n, b.width, alpha, a, width, b.row(0), width, 0, s.data(), n);
  }
  /// to = alpha p x + beta to, for p of `rows` rows and `columns` columns.
  void times(int64_t rows, int64_t columns, const std::vector<T>& p, PackedRows<T>& x, T alpha, T beta, T* to) {
    general.gemm(false, false, rows, x.width, columns, alpha, p.data(), columns, x.row(0), x.width, beta, to, x.width);
  }
  /// to += alpha p^T x
  void transposed_times(int64_t rows, int64_t columns, const std::vector<T>& p, int64_t width, const T* x, T alpha,
                        PackedRows<T>& to) {
    general.gemm(true, false, columns, width, rows, alpha, p.data(), columns, x, width, 1, to.row(0), width);
  }
};

/// The places of the `count` largest scores, of equals the first.
template <class T>
void find_top(const std::vector<T>& scores, int64_t row, int64_t n, int64_t count, std::vector<int32_t>& places,
              int32_t* top) {
  if (count == 0) return;
  const T* const s = scores.data() + row * n;
  places.resize(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  std::partial_sort(places.begin(), places.begin() + count, places.end(),
                    [&](int32_t i, int32_t j) { return s[i] != s[j] ? s[i] > s[j] : i < j; });
  std::copy_n(places.begin(), count, top);
}

template <class F>
void for_each_block(int64_t begin, int64_t end, const F& f) {
  for (int64_t first = begin; first < end; first += kRows) f(first, std::min(kRows, end - first));
}

}  // namespace linnet::clustered_attention_run
