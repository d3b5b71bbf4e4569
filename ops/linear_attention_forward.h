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
  Rows<T> q, k, v, out;
  State<T> state;
  T* z;

  explicit Forward(const LinearAttentionForward<T>& problem) : p(problem), arena{p.scratch} {
    const int64_t d = padded<T>(p.dim), m = padded<T>(p.value_dim);
    q = arena.rows(p.dim);
    k = arena.rows(p.dim);
    v = arena.rows(p.value_dim);
    out = arena.rows(p.value_dim);
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

  /// Where the primitive may write: into the output itself where it takes whole vectors and all of the group's rows.
  Rows<T> output_rows(const Range& range) const {
    if (range.n == range.groups() && p.value_dim == out.ld) return {p.o + range.first * p.o_row, p.o_row};
    return out;
  }

  void add_to_z(int64_t r) const {
    for (int64_t d = 0; d < k.ld; d += kLanes<T>) at(z + d) += at(k[r] + d);
  }

  void write_output(const Range& range, T* d, const Rows<T>& sums) const {
    const Present present{range, p.query_mask};
    T inverse[kChunk];
    for (int64_t r = 0; r < range.n; ++r) {
      d[r] = p.normalise ? d[r] + p.eps : T(1);
      inverse[r] = abs(d[r]) < p.smallest ? T(0) : 1 / d[r];
    }
    for (int64_t r = 0; r < range.n; ++r) {
      if (!present(r)) d[r] = inverse[r] = 0;
      p.d[range(r) * p.d_row] = d[r];
    }
    for (int64_t r = 0; r < range.n; ++r) {
      T* o = p.o + range(r) * p.o_row;
      const T* numerator = sums[r];
      if (inverse[r] == 0) {
        clear(p.value_dim, o);
      } else {
        const T by = inverse[r];
        each<T>(p.value_dim,
                [&](int64_t m, int64_t count) { store<T>(o + m, count, load(numerator + m, count) * by); });
      }
    }
  }

  void causal(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add(p.q, p.q_row, p.dim);
    ahead.add(p.k, p.k_row, p.dim);
    ahead.add(p.v, p.v_row, p.value_dim);
    ahead.add(p.o, p.o_row, p.value_dim);
    const Rows<T> values = stage_keys(range);
    stage_features({range, p.query_mask}, p.map, p.dim, p.q, p.q_row, q);
    T denominators[kChunk];
    for (int64_t r = 0; r < range.n; ++r) {
      add_to_z(r);
      denominators[r] = dot(q.ld, q[r], z);
    }
    const Rows<T> sums = output_rows(range);
    primitive<T, true, true>(range.groups(), k, values, q, state, sums, ahead);
    write_output(range, denominators, sums);
  }

  void add_keys(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add(p.k, p.k_row, p.dim);
    ahead.add(p.v, p.v_row, p.value_dim);
    const Rows<T> values = stage_keys(range);
    for (int64_t r = 0; r < range.n; ++r) add_to_z(r);
    primitive<T, true, false>(range.groups(), k, values, k, state, out, ahead);
  }

  void read_queries(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add(p.q, p.q_row, p.dim);
    ahead.add(p.o, p.o_row, p.value_dim);
    stage_features({range, p.query_mask}, p.map, p.dim, p.q, p.q_row, q);
    T denominators[kChunk];
    for (int64_t r = 0; r < range.n; ++r) denominators[r] = dot(q.ld, q[r], z);
    const Rows<T> sums = output_rows(range);
    primitive<T, false, true>(range.groups(), q, out, q, state, sums, ahead);
    write_output(range, denominators, sums);
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
