// Linear attention's backward kernel for one level: three calls of the primitive, two of them over descending rows. The
// normaliser is one more row of the state, reached by a 1 behind v and by c_i = -(g_i . o_i) behind g:
//
//     dv (rows down)    a = phi(q) / d    b = g           c = phi(k)       X = R
//     dk (rows down)    a = [g, c]        b = phi(q) / d  c = [v, 1]       X = [R^T; r]
//     dq (rows up)      a = [v, 1]        b = phi(k)      c = [g, c]       X = [S^T; z]
//
// The sweep down leaves phi'(q) / d in dq's rows and c in scratch memory, so that the sweep up reads neither q nor o.
// Private to ops/.
#pragma once
#include "linnet/ops/linear_attention_stage.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
struct Backward {
  const LinearAttentionBackward<T>& p;
  Arena<T> arena;
  Rows<T> q, k, v, g, out;
  State<T> up;           // [S^T; z]
  State<T> down;         // R
  State<T> down_turned;  // [R^T; r]
  T* c;                  // one a query

  explicit Backward(const LinearAttentionBackward<T>& problem) : p(problem), arena{p.scratch} {
    const int64_t d = padded<T>(p.dim), m = padded<T>(p.value_dim);
    q = arena.rows(p.dim);
    k = arena.rows(p.dim);
    v = arena.rows(p.value_dim + 1);
    g = arena.rows(p.value_dim + 1);
    out = arena.rows(d > m ? d : m);
    up = arena.state(p.value_dim + 1, d);
    down = arena.state(p.dim, m);
    down_turned = arena.state(p.value_dim + 1, d);
    c = arena.take(p.queries);
  }

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

  /// Queries whose denominator is a normal number; the others have no part in anything.
  struct Alive {
    const LinearAttentionBackward<T>& p;
    const Range& range;
    bool operator()(int64_t r) const { return r < range.n && !(abs(p.d[range(r) * p.d_row]) < p.smallest); }
  };

  void stage_keys(const Range& range) const {
    const Present present{range, p.key_mask};
    stage_features(present, p.map, p.dim, p.k, p.k_row, k);
    stage_with_one(present, p.value_dim, p.v, p.v_row, v);
  }

  /// c_i = -(g_i . o_i), the gradient that reaches the denominator.
  void find_c(const Range& range) const {
    for (int64_t r = 0; r < range.n; ++r) {
      const T *g_row = p.g + range(r) * p.o_row, *o = p.o + range(r) * p.o_row;
      Plain<T> sum = {};
      each<T>(p.value_dim, [&](int64_t m, int64_t count) { sum += load(g_row + m, count) * load(o + m, count); });
      c[range(r)] = p.normalise ? -sums<T, 1>(&sum)[0] : T(0);
    }
  }

  /// [g, c] of the queries that are alive.
  void stage_gradients(const Range& range) const {
    const Alive alive{p, range};
    for (int64_t r = 0; r < range.groups(); ++r) {
      const T* from = p.g + range(r) * p.o_row;
      T* to = g[r];
      if (alive(r)) {
        each<T>(p.value_dim, [&](int64_t m, int64_t count) { store<T>(to + m, count, load(from + m, count)); });
        to[p.value_dim] = c[range(r)];
      } else {
        clear(p.value_dim + 1, to);
      }
    }
  }

  /// phi(q) / d into q, and phi'(q) / d into dq. 1 / d goes here and not with g: phi(q) / d stays in range where both
  /// are tiny.
  void stage_queries(const Range& range) const {
    const Alive alive{p, range};
    with_map<T>(p.map, [&](auto map) {
      for (int64_t r = 0; r < range.groups(); ++r) {
        if (!alive(r)) {
          clear(p.dim, q[r]);
          continue;
        }
        const T inverse = 1 / p.d[range(r) * p.d_row];
        const T* from = p.q + range(r) * p.q_row;
        T *to = q[r], *factor = p.dq ? p.dq + range(r) * p.q_row : out[r];
        each<T>(p.dim, [&](int64_t d, int64_t count) {
          const Plain<T> phi = map.phi(load(from + d, count));
          store<T>(to + d, count, phi * inverse);
          store<T>(factor + d, count, map.slope(phi) * inverse);
        });
      }
    });
  }

  /// dq, where phi'(q) / d lies.
  void write_dq(const Range& range) const {
    const Alive alive{p, range};
    for (int64_t r = 0; r < range.n; ++r) {
      T* dq = p.dq + range(r) * p.q_row;
      const T* sum = out[r];
      if (alive(r)) {
        each<T>(p.dim,
                [&](int64_t d, int64_t count) { store<T>(dq + d, count, load(sum + d, count) * load(dq + d, count)); });
      } else {
        clear(p.dim, dq);
      }
    }
  }

  void write_dv(const Range& range) const {
    const Present present{range, p.key_mask};
    for (int64_t r = 0; r < range.n; ++r) {
      const T* sum = out[r];
      T* dv = p.dv + range(r) * p.v_row;
      each<T>(p.value_dim, [&](int64_t m, int64_t count) { store<T>(dv + m, count, load(sum + m, count)); });
      if (!present(r)) clear(p.value_dim, dv);
    }
  }

  void write_dk(const Range& range) const {
    const Present present{range, p.key_mask};
    with_map<T>(p.map, [&](auto map) {
      for (int64_t r = 0; r < range.n; ++r) {
        const T *sum = out[r], *phi = k[r];
        T* dk = p.dk + range(r) * p.k_row;
        each<T>(p.dim, [&](int64_t d, int64_t count) {
          store<T>(dk + d, count, load(sum + d, count) * map.slope(load(phi + d, count)));
        });
        if (!present(r)) clear(p.dim, dk);
      }
    });
  }

  void causal_down(const Range& range) const {
    Ahead<T> ahead(range);
    for (const auto& [x, row, width] :
         {Stream{p.q, p.q_row, p.dim}, Stream{p.k, p.k_row, p.dim}, Stream{p.v, p.v_row, p.value_dim},
          Stream{p.g, p.o_row, p.value_dim}, Stream{p.o, p.o_row, p.value_dim}, Stream{p.dq, p.q_row, p.dim},
          Stream{p.dk, p.k_row, p.dim}, Stream{p.dv, p.v_row, p.value_dim}}) {
      ahead.add(x, row, width);
    }
    stage_keys(range);
    find_c(range);
    stage_gradients(range);
    stage_queries(range);
    primitive<T, true, true>(range.groups(), q, g, k, down, out, ahead);
    write_dv(range);
    primitive<T, true, true>(range.groups(), g, q, v, down_turned, out, Ahead<T>(range));
    write_dk(range);
  }

  void causal_up(const Range& range) const {
    Ahead<T> ahead(range);
    for (const auto& [x, row, width] : {Stream{p.k, p.k_row, p.dim}, Stream{p.v, p.v_row, p.value_dim},
                                        Stream{p.g, p.o_row, p.value_dim}, Stream{p.dq, p.q_row, p.dim}}) {
      ahead.add(x, row, width);
    }
    stage_keys(range);
    stage_gradients(range);
    primitive<T, true, true>(range.groups(), v, k, g, up, out, ahead);
    write_dq(range);
  }

  void add_keys(const Range& range) const {
    stage_keys(range);
    primitive<T, true, false>(range.groups(), v, k, v, up, out, Ahead<T>(range));
  }

  void all_queries(const Range& range) const {
    find_c(range);
    stage_gradients(range);
    stage_queries(range);
    primitive<T, true, false>(range.groups(), g, q, g, down_turned, out, Ahead<T>(range));
    if (!p.dq) return;
    primitive<T, true, false>(range.groups(), q, g, q, down, out, Ahead<T>(range));
    primitive<T, false, true>(range.groups(), g, k, g, up, out, Ahead<T>(range));
    write_dq(range);
  }

  void all_keys(const Range& range) const {
    stage_keys(range);
    primitive<T, false, true>(range.groups(), k, g, k, down, out, Ahead<T>(range));
    write_dv(range);
    primitive<T, false, true>(range.groups(), v, q, v, down_turned, out, Ahead<T>(range));
    write_dk(range);
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
  struct Stream {
    const T* x;
    int64_t row, width;
  };
};

}  // namespace
}  // namespace linnet::LINNET_LEVEL
