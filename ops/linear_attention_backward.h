// Linear attention's backward kernel for one level: three calls of the primitive, two of them over descending rows. The
// normaliser is one more row of the state, reached by a 1 behind v and by c_i = -(g_i . o_i) behind g:
//
//     dv (rows down)    a = phi(q) / d    b = g           c = phi(k)       X = R
//     dk (rows down)    a = [g, c]        b = phi(q) / d  c = [v, 1]       X = [R^T; r]
//     dq (rows up)      a = [v, 1]        b = phi(k)      c = [g, c]       X = [S^T; z]
//
// The sweep down leaves phi'(q) / d in dq's rows, and all that it staged of k, v and g, so that the sweep up begins its
// work at once.
// Private to ops/.
#pragma once
#include "linnet/ops/linear_attention_stage.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
struct Backward {
  const LinearAttentionBackward<T>& p;
  Arena<T> arena;
  Rows<T> q;
  Rows<T> k, v, g;       // of all rows where causal, else of a chunk
  State<T> up;           // [S^T; z]
  State<T> down;         // R
  State<T> down_turned;  // [R^T; r]
  T* c;                  // one a query
  T* unused;             // a row of dq where none is wanted

  explicit Backward(const LinearAttentionBackward<T>& problem) : p(problem), arena{p.scratch} {
    const int64_t d = padded<T>(p.dim), m = padded<T>(p.value_dim);
    q = arena.rows(p.dim);
    k = staged(p.dim);
    v = staged(p.value_dim + 1);
    g = staged(p.value_dim + 1);
    unused = arena.take(d);
    up = arena.state(p.value_dim + 1, d);
    down = arena.state(p.dim, m);
    down_turned = arena.state(p.value_dim + 1, d);
    c = arena.take(p.queries);
  }

  /// Rows of n numbers, with a group of zeros before the first and behind the last: a chunk's last group may reach
  /// there. What lies behind the n numbers is never used: it meets columns of a state that nobody reads.
  Rows<T> staged(int64_t n) {
    const int64_t width = padded<T>(n), rows = p.causal ? p.queries : kChunk;
    T* begin = arena.take((rows + 2 * kRows) * width);
    if (begin) {
      clear(kRows * width, begin);
      clear(kRows * width, begin + (kRows + rows) * width);
    }
    return {begin + kRows * width, width};
  }

  /// A chunk of what is staged, in the order of its rows.
  static Rows<T> part(const Rows<T>& all, const Range& range) { return {all[range.first], range.step * all.ld}; }

  void load_states() const {
    up.clear();
    down.clear();
    down_turned.clear();
    for (int64_t d = 0; d < p.dim; ++d) {
      for (int64_t m = 0; m < p.value_dim; ++m) {
        if (p.s) up(m, d) = p.s[d * p.value_dim + m];
        down(d, m) = down_turned(m, d) = p.ds[d * p.value_dim + m];
      }
      if (p.z) up(p.value_dim, d) = p.z[d];
      down_turned(p.value_dim, d) = p.dz[d];
    }
  }

  void store_gradients() const {
    for (int64_t d = 0; d < p.dim; ++d) {
      for (int64_t m = 0; m < p.value_dim; ++m) p.ds[d * p.value_dim + m] = down_turned(m, d);
      p.dz[d] = down_turned(p.value_dim, d);
    }
  }

  /// One over the denominators; 0 for a query whose denominator is no normal number: it has no part in anything.
  void find_inverses(const Range& range, T* inverse) const {
    for (int64_t r = 0; r < range.groups(); ++r) {
      const T d = r < range.n ? p.d[range(r) * p.d_row] : T(0);
      inverse[r] = abs(d) < p.smallest ? T(0) : 1 / d;
    }
  }

  void stage_keys(const Range& range, const Rows<T>& features, const Rows<T>& values) const {
    const Present present{range, p.key_mask};
    stage_features(present, p.map, p.dim, p.k, p.k_row, features);
    stage_with_one(present, p.value_dim, p.v, p.v_row, values);
  }

  /// c_i = -(g_i . o_i), the gradient that reaches the denominator.
  void find_c(const Range& range) const {
    T products[kChunk] = {};
    if (p.normalise) {
      sum_rows(range.n, products, [&](int64_t r) {
        const T *g_row = p.g + range(r) * p.o_row, *o = p.o + range(r) * p.o_row;
        Plain<T> sum = {};
        each<T>(p.value_dim, [&](int64_t m, int64_t count) { sum += load(g_row + m, count) * load(o + m, count); });
        return sum;
      });
    }
    for (int64_t r = 0; r < range.n; ++r) c[range(r)] = -products[r];
  }

  /// [g, c] of the queries that are alive.
  void stage_gradients(const Range& range, const T* inverse, const Rows<T>& out) const {
    for (int64_t r = 0; r < range.groups(); ++r) {
      const T* from = p.g + range(r) * p.o_row;
      T* to = out[r];
      if (inverse[r] == 0) {
        clear(p.value_dim + 1, to);
      } else {
        each<T>(p.value_dim, [&](int64_t m, int64_t count) { store<T>(to + m, count, load(from + m, count)); });
        to[p.value_dim] = c[range(r)];
      }
    }
  }

  /// phi(q) / d into q, and phi'(q) / d into dq. 1 / d goes here and not with g: phi(q) / d stays in range where both
  /// are tiny.
  void stage_queries(const Range& range, const T* inverse) const {
    with_map<T>(p.map, [&](auto map) {
      for (int64_t r = 0; r < range.groups(); ++r) {
        if (inverse[r] == 0) {
          clear(p.dim, q[r]);
          continue;
        }
        const T* from = p.q + range(r) * p.q_row;
        const T by = inverse[r];
        T *to = q[r], *factor = p.dq ? p.dq + range(r) * p.q_row : unused;
        each<T>(p.dim, [&](int64_t d, int64_t count) {
          const Plain<T> phi = map.phi(load(from + d, count));
          store<T>(to + d, count, phi * by);
          store<T>(factor + d, count, map.slope(phi) * by);
        });
      }
    });
  }

  // ---- what the primitive does with the gradients of a chunk's rows

  /// dq, where phi'(q) / d lies.
  auto write_dq(const Range& range, const T* inverse) const {
    return [ this, &range, inverse ](int64_t r, int64_t column, Plain<T> sum) __attribute__((always_inline)) {
      if (r >= range.n) return;
      T* dq = p.dq + range(r) * p.q_row + column;
      const int64_t count = p.dim - column;
      store<T>(dq, count, inverse[r] == 0 ? Plain<T>{} : sum * load(dq, count));
    };
  }

  auto write_dv(const Range& range) const {
    return [ this, &range ](int64_t r, int64_t column, Plain<T> sum) __attribute__((always_inline)) {
      if (r >= range.n) return;
      store<T>(p.dv + range(r) * p.v_row + column, p.value_dim - column, is_key(range(r)) ? sum : Plain<T>{});
    };
  }

  template <class Map>
  auto write_dk(const Range& range, const Rows<T>& features, Map map) const {
    return [ this, &range, &features, map ](int64_t r, int64_t column, Plain<T> sum) __attribute__((always_inline)) {
      if (r >= range.n) return;
      const Plain<T> dk = sum * map.slope(at(features[r] + column));
      store<T>(p.dk + range(r) * p.k_row + column, p.dim - column, is_key(range(r)) ? dk : Plain<T>{});
    };
  }

  bool is_key(int64_t i) const { return !p.key_mask || p.key_mask[i]; }

  void causal_down(const Range& range) const {
    Ahead<T> ahead(range);
    for (const Stream& x : {Stream{p.q, p.q_row, p.dim},
                            {p.k, p.k_row, p.dim},
                            {p.v, p.v_row, p.value_dim},
                            {p.g, p.o_row, p.value_dim},
                            {p.o, p.o_row, p.value_dim},
                            {p.dq, p.q_row, p.dim},
                            {p.dk, p.k_row, p.dim},
                            {p.dv, p.v_row, p.value_dim}})
      ahead.add(x);
    const Rows<T> keys = part(k, range), values = part(v, range), gradients = part(g, range);
    T inverse[kChunk];
    stage_keys(range, keys, values);
    find_inverses(range, inverse);
    find_c(range);
    stage_gradients(range, inverse, gradients);
    stage_queries(range, inverse);
    primitive<T, true, true>(range.groups(), q, gradients, keys, down, ahead, write_dv(range));
    with_map<T>(p.map, [&](auto map) {
      primitive<T, true, true>(range.groups(), gradients, q, values, down_turned, Ahead<T>(range),
                               write_dk(range, keys, map));
    });
  }

  void causal_up(const Range& range) const {
    Ahead<T> ahead(range);
    ahead.add({p.dq, p.q_row, p.dim});
    T inverse[kChunk];
    find_inverses(range, inverse);
    primitive<T, true, true>(range.groups(), part(v, range), part(k, range), part(g, range), up, ahead,
                             write_dq(range, inverse));
  }

  void add_keys(const Range& range) const {
    stage_keys(range, k, v);
    primitive<T, true, false>(range.groups(), v, k, v, up, Ahead<T>(range), Nowhere());
  }

  void all_queries(const Range& range) const {
    T inverse[kChunk];
    find_inverses(range, inverse);
    find_c(range);
    stage_gradients(range, inverse, g);
    stage_queries(range, inverse);
    primitive<T, true, false>(range.groups(), g, q, g, down_turned, Ahead<T>(range), Nowhere());
    if (!p.dq) return;
    primitive<T, true, false>(range.groups(), q, g, q, down, Ahead<T>(range), Nowhere());
    primitive<T, false, true>(range.groups(), g, k, g, up, Ahead<T>(range), write_dq(range, inverse));
  }

  void all_keys(const Range& range) const {
    stage_keys(range, k, v);
    primitive<T, false, true>(range.groups(), k, g, k, down, Ahead<T>(range), write_dv(range));
    with_map<T>(p.map, [&](auto map) {
      primitive<T, false, true>(range.groups(), v, q, v, down_turned, Ahead<T>(range), write_dk(range, k, map));
    });
  }

  void run() const {
    load_states();
    if (p.causal) {
      chunks(p.queries, false, [&](const Range& range) { causal_down(range); });
      chunks(p.queries, true, [&](const Range& range) { causal_up(range); });
    } else {
      chunks(p.keys, true, [&](const Range& range) { add_keys(range); });
      chunks(p.queries, true, [&](const Range& range) { all_queries(range); });
      chunks(p.keys, true, [&](const Range& range) { all_keys(range); });
    }
    store_gradients();
  }

 private:
  using Stream = typename Ahead<T>::Stream;
};

}  // namespace
}  // namespace linnet::LINNET_LEVEL
