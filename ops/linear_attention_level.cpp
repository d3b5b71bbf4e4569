// Linear attention for one level. All of it is one primitive (linear_attention_block.h), over rows r in order:
//
//     X += a_r b_r^T,   o_r = X^T c_r
//
// Forward is a = phi(k), b = v, c = phi(q). Backward is three calls with the roles exchanged, two of them over
// descending rows; the normaliser is one more row of the state, reached by a 1 behind v and by c_i d_i = -(g_i . o_i)
// behind g:
//
//     dq (rows up)      a = [v, 1]        b = phi(k)      c = [g, -g.o]    X = [S^T; z]
//     dv (rows down)    a = phi(q) / d    b = g           c = phi(k)       X = R
//     dk (rows down)    a = [g, -g.o]     b = phi(q) / d  c = [v, 1]       X = [R^T; r]
//
// Rows are staged in chunks of kChunk, padded with zeros to whole vectors and to whole groups of kRows; kRows rows by
// two vectors of columns then stay in registers while X streams by once. A masked row is staged as zeros, unread.
#include "linnet/ops/linear_attention_block.h"
#include "linnet/ops/linear_attention_kernels.h"
#include "linnet/ops/linear_attention_stage.h"

namespace linnet::LINNET_LEVEL {
namespace {

// ---- forward

template <class T>
struct ForwardParts {
  Rows<T> q, k, v, out;
  State<T> state;
  T* z;
  Arena<T> arena;
  ForwardParts(int64_t dim, int64_t width, T* scratch) : arena{scratch} {
    q = arena.rows(padded<T>(dim));
    k = arena.rows(padded<T>(dim));
    v = arena.rows(padded<T>(width));
    out = arena.rows(padded<T>(width));
    state = arena.state(dim, padded<T>(width));
    z = arena.take(padded<T>(dim));
  }
};

template <class T>
void write_output(const LinearAttentionForward<T>& p, int64_t i, T denominator, const T* numerator) {
  const bool asked = !p.query_mask || p.query_mask[i];
  const T d = !asked ? T(0) : p.normalise ? denominator + p.eps : T(1);
  T* o = p.o + i * p.o_row;
  p.d[i * p.d_row] = d;
  if (abs(d) < p.smallest) return clear(0, p.value_dim, o);
  const T inverse = 1 / d;
  for (int64_t m = 0; m < p.value_dim; ++m) o[m] = numerator[m] * inverse;
}

/// One step of the recurrent form, on the state as it lies.
template <class T>
void forward_step(const LinearAttentionForward<T>& p, const ForwardParts<T>& parts) {
  const Range range{0, 1, 1};
  stage_features(range, p.map, p.dim, p.k, p.k_row, p.key_mask, parts.k);
  stage_features(range, p.map, p.dim, p.q, p.q_row, p.query_mask, parts.q);
  stage_values(range, p.value_dim, p.v, p.v_row, p.key_mask, T(0), parts.v);
  const T *a = parts.q[0], *b = parts.k[0], *__restrict v = parts.v[0];
  T* __restrict out = parts.out[0];
  clear(0, p.value_dim, out);
  for (int64_t d = 0; d < p.dim; ++d) {
    T* __restrict s = p.s + d * p.value_dim;
    for (int64_t m = 0; m < p.value_dim; ++m) {
      s[m] += b[d] * v[m];
      out[m] += a[d] * s[m];
    }
    p.z[d] += b[d];
  }
  write_output(p, 0, dot(p.dim, a, p.z), out);
}

template <class T>
void forward(const LinearAttentionForward<T>& p) {
  const ForwardParts<T> parts(p.dim, p.value_dim, p.scratch);
  if (p.causal && p.keys == 1) return forward_step(p, parts);
  const int64_t z_size = padded<T>(p.dim);
  parts.state.clear();
  clear(0, z_size, parts.z);
  for (int64_t d = 0; d < p.dim; ++d) {
    for (int64_t m = 0; m < p.value_dim; ++m) parts.state(d, m) = p.s[d * p.value_dim + m];
    parts.z[d] = p.z[d];
  }
  const auto stage_keys = [&](const Range& range) {
    stage_features(range, p.map, p.dim, p.k, p.k_row, p.key_mask, parts.k);
    stage_values(range, p.value_dim, p.v, p.v_row, p.key_mask, T(0), parts.v);
  };
  const auto add_to_z = [&](const T* b) {
    for (int64_t d = 0; d < z_size; d += kLanes<T>) at(parts.z + d) += at(b + d);
  };
  if (!p.causal) {
    for (int64_t j = 0; j < p.keys; j += kChunk) {
      const Range range{j, 1, p.keys - j < kChunk ? p.keys - j : kChunk};
      stage_keys(range);
      for (int64_t r = 0; r < range.n; ++r) add_to_z(parts.k[r]);
      primitive<T, true, false>(range.groups(), parts.k, parts.v, parts.k, parts.state, parts.out);
    }
  }
  for (int64_t i = 0; i < p.queries; i += kChunk) {
    const Range range{i, 1, p.queries - i < kChunk ? p.queries - i : kChunk};
    T denominators[kChunk];
    stage_features(range, p.map, p.dim, p.q, p.q_row, p.query_mask, parts.q);
    if (p.causal) stage_keys(range);
    for (int64_t r = 0; r < range.n; ++r) {
      if (p.causal) add_to_z(parts.k[r]);
      denominators[r] = dot(z_size, parts.q[r], parts.z);
    }
    if (p.causal) {
      primitive<T, true, true>(range.groups(), parts.k, parts.v, parts.q, parts.state, parts.out);
    } else {
      primitive<T, false, true>(range.groups(), parts.q, parts.v, parts.q, parts.state, parts.out);
    }
    for (int64_t r = 0; r < range.n; ++r) write_output(p, i + r, denominators[r], parts.out[r]);
  }
  for (int64_t d = 0; d < p.dim; ++d) {
    for (int64_t m = 0; m < p.value_dim; ++m) p.s[d * p.value_dim + m] = parts.state(d, m);
    p.z[d] = parts.z[d];
  }
}

// ---- backward

template <class T>
struct BackwardParts {
  Rows<T> q, k, v, g, out;
  State<T> up;           // [S^T; z]
  State<T> down;         // R
  State<T> down_turned;  // [R^T; r]
  Arena<T> arena;
  BackwardParts(int64_t dim, int64_t width, T* scratch) : arena{scratch} {
    const int64_t d = padded<T>(dim), m = padded<T>(width + 1);
    q = arena.rows(d);
    k = arena.rows(d);
    v = arena.rows(m);
    g = arena.rows(m);
    out = arena.rows(d > m ? d : m);
    up = arena.state(width + 1, d);
    down = arena.state(dim, padded<T>(width));
    down_turned = arena.state(width + 1, d);
  }
};

/// What backward does with a chunk of rows.
template <class T>
struct Backward {
  const LinearAttentionBackward<T>& p;
  const BackwardParts<T> parts;
  uint8_t alive[kChunk];  // rows whose denominator is a normal number
  T inverse[kChunk];      // 1 / d

  explicit Backward(const LinearAttentionBackward<T>& problem) : p(problem), parts(p.dim, p.value_dim, p.scratch) {
    parts.up.clear();
    parts.down.clear();
    parts.down_turned.clear();
    for (int64_t d = 0; d < p.dim; ++d) {
      for (int64_t m = 0; m < p.value_dim; ++m) {
        if (p.s) parts.up(m, d) = p.s[d * p.value_dim + m];
        parts.down(d, m) = parts.down_turned(m, d) = p.ds[d * p.value_dim + m];
      }
      if (p.z) parts.up(p.value_dim, d) = p.z[d];
      parts.down_turned(p.value_dim, d) = p.dz[d];
    }
  }

  void stage_keys(const Range& range) {
    stage_features(range, p.map, p.dim, p.k, p.k_row, p.key_mask, parts.k);
    stage_values(range, p.value_dim, p.v, p.v_row, p.key_mask, T(1), parts.v);
  }

  /// phi(q), and g followed by -(g . o); dead rows are zeros.
  void stage_queries(const Range& range) {
    for (int64_t r = 0; r < range.groups(); ++r) {
      const T d = r < range.n ? p.d[range(r) * p.d_row] : T(0);
      const bool lives = !(abs(d) < p.smallest);
      T *phi = parts.q[r], *to = parts.g[r];
      alive[r] = lives;
      inverse[r] = lives ? 1 / d : T(0);
      if (lives) {
        const T *g = p.g + range(r) * p.o_row, *o = p.o + range(r) * p.o_row;
        features(p.map, p.dim, p.q + range(r) * p.q_row, phi);
        for (int64_t m = 0; m < p.value_dim; ++m) to[m] = g[m];
        to[p.value_dim] = p.normalise ? -dot(p.value_dim, g, o) : T(0);
      }
      clear(lives ? p.dim : 0, parts.q.ld, phi);
      clear(lives ? p.value_dim + 1 : 0, parts.g.ld, to);
    }
  }

  /// phi(q) becomes phi(q) / d. 1 / d goes here and not with g: phi(q) / d stays in range where both are tiny.
  void divide_queries(const Range& range) {
    for (int64_t r = 0; r < range.n; ++r) {
      for (int64_t d = 0; d < parts.q.ld; ++d) parts.q[r][d] *= inverse[r];
    }
  }

  void write_dq(const Range& range) {
    for (int64_t r = 0; r < range.n; ++r) {
      T* dq = p.dq + range(r) * p.q_row;
      if (alive[r]) {
        times_slope(p.map, p.dim, parts.out[r], parts.q[r], inverse[r], dq);
      } else {
        clear(0, p.dim, dq);
      }
    }
  }

  bool masked(int64_t j) const { return p.key_mask && !p.key_mask[j]; }

  void write_dv(const Range& range) {
    for (int64_t r = 0; r < range.n; ++r) {
      T* dv = p.dv + range(r) * p.v_row;
      for (int64_t m = 0; m < p.value_dim; ++m) dv[m] = parts.out[r][m];
      if (masked(range(r))) clear(0, p.value_dim, dv);
    }
  }

  void write_dk(const Range& range) {
    for (int64_t r = 0; r < range.n; ++r) {
      T* dk = p.dk + range(r) * p.k_row;
      times_slope(p.map, p.dim, parts.out[r], parts.k[r], T(1), dk);
      if (masked(range(r))) clear(0, p.dim, dk);
    }
  }

  void causal_up(const Range& range) {
    stage_keys(range);
    stage_queries(range);
    primitive<T, true, true>(range.groups(), parts.v, parts.k, parts.g, parts.up, parts.out);
    write_dq(range);
  }

  void causal_down(const Range& range) {
    stage_keys(range);
    stage_queries(range);
    divide_queries(range);
    primitive<T, true, true>(range.groups(), parts.q, parts.g, parts.k, parts.down, parts.out);
    write_dv(range);
    primitive<T, true, true>(range.groups(), parts.g, parts.q, parts.v, parts.down_turned, parts.out);
    write_dk(range);
  }

  void add_keys(const Range& range) {
    stage_keys(range);
    primitive<T, true, false>(range.groups(), parts.v, parts.k, parts.v, parts.up, parts.out);
  }

  void all_queries(const Range& range) {
    stage_queries(range);
    primitive<T, false, true>(range.groups(), parts.g, parts.k, parts.g, parts.up, parts.out);
    write_dq(range);
    divide_queries(range);
    primitive<T, true, false>(range.groups(), parts.q, parts.g, parts.q, parts.down, parts.out);
    primitive<T, true, false>(range.groups(), parts.g, parts.q, parts.g, parts.down_turned, parts.out);
  }

  void all_keys(const Range& range) {
    stage_keys(range);
    primitive<T, false, true>(range.groups(), parts.k, parts.g, parts.k, parts.down, parts.out);
    write_dv(range);
    primitive<T, false, true>(range.groups(), parts.v, parts.q, parts.v, parts.down_turned, parts.out);
    write_dk(range);
  }

  /// f over 0 .. n-1 in chunks, upwards or downwards.
  template <class F>
  void chunks(int64_t n, bool up, F f) {
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t size = n - i < kChunk ? n - i : kChunk;
      (this->*f)(up ? Range{i, 1, size} : Range{n - 1 - i, -1, size});
    }
  }
};

template <class T>
void backward(const LinearAttentionBackward<T>& p) {
  Backward<T> work(p);
  if (p.causal) {
    work.chunks(p.queries, true, &Backward<T>::causal_up);
    work.chunks(p.queries, false, &Backward<T>::causal_down);
  } else {
    work.chunks(p.keys, true, &Backward<T>::add_keys);
    work.chunks(p.queries, true, &Backward<T>::all_queries);
    work.chunks(p.keys, true, &Backward<T>::all_keys);
  }
  for (int64_t d = 0; d < p.dim; ++d) {
    for (int64_t m = 0; m < p.value_dim; ++m) p.ds[d * p.value_dim + m] = work.parts.down(d, m);
    p.dz[d] = work.parts.down_turned(p.value_dim, d);
  }
}

template <class T>
int64_t forward_scratch(int64_t dim, int64_t value_dim) {
  return ForwardParts<T>(dim, value_dim, nullptr).arena.used;
}
template <class T>
int64_t backward_scratch(int64_t dim, int64_t value_dim) {
  return BackwardParts<T>(dim, value_dim, nullptr).arena.used;
}

}  // namespace

extern const LinearAttentionF32 linear_attention_f32 = {forward<float>, backward<float>, forward_scratch<float>,
                                                        backward_scratch<float>};
extern const LinearAttentionF64 linear_attention_f64 = {forward<double>, backward<double>, forward_scratch<double>,
                                                        backward_scratch<double>};

}  // namespace linnet::LINNET_LEVEL
