// Linear attention's forward kernel for one level: the primitive with a = phi(k), b = v, c = phi(q), X = S.
// Private to ops/.
#pragma once
#include "linnet/ops/linear_attention_stage.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
struct Forward {
  const LinearAttentionForward<T>& p;
  Arena<T> arena;
  Rows<T> q, k, v;
  State<T> state;
  T* z;

  explicit Forward(const LinearAttentionForward<T>& problem) : p(problem), arena{p.scratch} {
    const int64_t d = padded<T>(p.dim), m = padded<T>(p.value_dim);
    q = arena.rows(p.dim);
    k = arena.rows(p.dim);
    v = arena.rows(p.value_dim);
    state = arena.state(p.dim, m);
    z = arena.take(d);
  }

  void load_state() const {
    state.clear();
    clear(k.ld, z);
    for (int64_t d = 0; d < p.dim; ++d) {
      for (int64_t m = 0; m < p.value_dim; ++m) state(d, m) = p.s[d * p.value_dim + m];
      z[d] = p.z[d];
    }
  }

  void store_state() const {
    for (int64_t d = 0; d < p.dim; ++d) {
      for (int64_t m = 0; m < p.value_dim; ++m) p.s[d * p.value_dim + m] = state(d, m);
      p.z[d] = z[d];
    }
  }

  /// phi(k) into k; returns v as it lies where whole vectors of it can be read there, or staged.
  Rows<T> stage_keys(const Range& range) const {
    const Present present{range, p.key_mask};
    stage_features(present, p.map, p.dim, p.k, p.k_row, k);
    if (present.all() && p.value_dim == v.ld) return {const_cast<T*>(p.v) + range.first * p.v_row, p.v_row};
    stage(present, p.value_dim, p.v, p.v_row, v);
    return v;
  }

  /// q_r . z for the rows of a chunk, each k_r added to z before where kAdd.
  template <bool kAdd>
  void find_denominators(int64_t rows, T* out) const {
    for (int64_t r = 0; r < rows; r += kLanes<T>) {
      Plain<T> products[kLanes<T>] = {};
      const auto add = [&](int64_t count) __attribute__((always_inline)) {
        for (int64_t d = 0; d < q.ld; d += kLanes<T>) {
          Plain<T> sum = at(z + d);
#pragma GCC unroll 16
          for (int64_t i = 0; i < kLanes<T>; ++i) {
            if (i >= count) continue;
            if constexpr (kAdd) sum += at(k[r + i] + d);
            products[i] += at(q[r + i] + d) * sum;
          }
          if constexpr (kAdd) at(z + d) = sum;
        }
      };
      if (rows - r >= kLanes<T>) {
        add(kLanes<T>);
      } else {
        add(rows - r);
      }
      at(out + r) = sums<T, kLanes<T>>(products);
    }
  }

  /// One over the denominators; 0 for a query that is masked or whose denominator is no normal number.
  void find_inverses(const Range& range, const T* sums, T* inverse) const {
    for (int64_t r = 0; r < range.n; ++r) {
      const bool present = !p.query_mask || p.query_mask[range(r)];
      const T d = !present ? T(0) : p.normalise ? sums[r] + p.eps : T(1);
      inverse[r] = abs(d) < p.smallest ? T(0) : 1 / d;
      p.d[range(r) * p.d_row] = d;
    }
  }

  /// Writes the outputs of a chunk as the primitive makes them.
  auto outputs(const Range& range, const T* inverse) const {
    return [ this, &range, inverse ](int64_t r, int64_t column, Plain<T> sum) __attribute__((always_inline)) {
      if (r >= range.n) return;
      const Plain<T> o = inverse[r] == 0 ? Plain<T>{} : sum * inverse[r];
      store<T>(p.o + range(r) * p.o_row + column, p.value_dim - column, o);
    };
  }

  void causal(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add({p.q, p.q_row, p.dim});
    ahead.add({p.k, p.k_row, p.dim});
    ahead.add({p.v, p.v_row, p.value_dim});
    ahead.add({p.o, p.o_row, p.value_dim});
    const Rows<T> values = stage_keys(range);
    stage_features({range, p.query_mask}, p.map, p.dim, p.q, p.q_row, q);
    T sums[kChunk], inverse[kChunk];
    find_denominators<true>(range.n, sums);
    find_inverses(range, sums, inverse);
    primitive<T, true, true>(range.groups(), k, values, q, state, ahead, outputs(range, inverse));
  }

  void add_keys(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add({p.k, p.k_row, p.dim});
    ahead.add({p.v, p.v_row, p.value_dim});
    const Rows<T> values = stage_keys(range);
    for (int64_t d = 0; d < k.ld; d += kLanes<T>) {
      for (int64_t r = 0; r < range.n; ++r) at(z + d) += at(k[r] + d);
    }
    primitive<T, true, false>(range.groups(), k, values, k, state, ahead, Nowhere());
  }

  void read_queries(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add({p.q, p.q_row, p.dim});
    ahead.add({p.o, p.o_row, p.value_dim});
    stage_features({range, p.query_mask}, p.map, p.dim, p.q, p.q_row, q);
    T sums[kChunk], inverse[kChunk];
    find_denominators<false>(range.n, sums);
    find_inverses(range, sums, inverse);
    primitive<T, false, true>(range.groups(), q, v, q, state, ahead, outputs(range, inverse));
  }

  void run() const {
    load_state();
    if (!p.causal) chunks(p.keys, true, [&](const Range& range) { add_keys(range); });
    chunks(p.queries, true, [&](const Range& range) { p.causal ? causal(range) : read_queries(range); });
    store_state();
  }
};

}  // namespace
}  // namespace linnet::LINNET_LEVEL
