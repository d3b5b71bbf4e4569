// Linear attention in plain loops: the code to read beside docs/linear_attention.md, and the reference for the fast
// form.
#include <algorithm>
#include <cmath>

#include "linnet/ops/linear_attention_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
T phi(FeatureMap map, T x) {
  switch (map) {
    case FeatureMap::elu1:
      return x >= 0 ? x + 1 : std::exp(x);  // elu plus one would lose the small values
    case FeatureMap::relu:
      return x < 0 ? T(0) : x;
    case FeatureMap::identity:
      break;
  }
  return x;
}

template <class T>
T slope(FeatureMap map, T x) {
  switch (map) {
    case FeatureMap::elu1:
      return x >= 0 ? T(1) : std::exp(x);
    case FeatureMap::relu:
      return x > 0 ? T(1) : T(0);
    case FeatureMap::identity:
      break;
  }
  return 1;
}

/// S += b_j v_j^T and z += b_j, where b_j = phi(k_j). A masked key is not read: it adds nothing.
template <class T>
void add_key(const LinearAttentionInputs<T>& in, int64_t j, T* s, T* z) {
  if (in.key_mask && !in.key_mask[j]) return;
  const T* k = in.k + j * in.k_row;
  const T* v = in.v + j * in.v_row;
  for (int64_t d = 0; d < in.dim; ++d) {
    const T b = phi(in.map, k[d]);
    z[d] += b;
    for (int64_t m = 0; m < in.value_dim; ++m) s[d * in.value_dim + m] += b * v[m];
  }
}

/// d_i = z . a_i + eps and o_i = S^T a_i / d_i, where a_i = phi(q_i).
template <class T>
void read_query(const LinearAttentionForward<T>& p, int64_t i) {
  T* o = p.o + i * p.o_row;
  T& denominator = p.d[i * p.d_row];
  std::fill_n(o, p.value_dim, T(0));
  denominator = 0;
  if (p.query_mask && !p.query_mask[i]) return;
  const T* q = p.q + i * p.q_row;
  for (int64_t d = 0; d < p.dim; ++d) {
    const T a = phi(p.map, q[d]);
    denominator += a * p.z[d];
    for (int64_t m = 0; m < p.value_dim; ++m) o[m] += a * p.s[d * p.value_dim + m];
  }
  denominator = p.normalise ? denominator + p.eps : T(1);
  const bool none = std::abs(denominator) < p.smallest;
  for (int64_t m = 0; m < p.value_dim; ++m) o[m] = none ? T(0) : o[m] / denominator;
}

template <class T>
void forward(const LinearAttentionForward<T>& p) {
  if (!p.causal) {
    for (int64_t j = 0; j < p.keys; ++j) add_key(p, j, p.s, p.z);
  }
  for (int64_t i = 0; i < p.queries; ++i) {
    if (p.causal) add_key(p, i, p.s, p.z);
    read_query(p, i);
  }
}

/// c_i d_i = -(g_i . o_i), the gradient that reaches the denominator; 0 where nothing is normalised.
template <class T>
T denominator_gradient(const LinearAttentionBackward<T>& p, int64_t i) {
  T dot = 0;
  for (int64_t m = 0; m < p.value_dim; ++m) dot += p.g[i * p.o_row + m] * p.o[i * p.o_row + m];
  return p.normalise ? -dot : T(0);
}

template <class T>
bool is_dead(const LinearAttentionBackward<T>& p, int64_t i) {
  return std::abs(p.d[i * p.d_row]) < p.smallest;
}

/// dq_i = phi'(q_i) (S g_i + c z) / d_i
template <class T>
void query_gradient(const LinearAttentionBackward<T>& p, int64_t i, const T* s, const T* z) {
  T* dq = p.dq + i * p.q_row;
  std::fill_n(dq, p.dim, T(0));
  if (is_dead(p, i)) return;
  const T* q = p.q + i * p.q_row;
  const T* g = p.g + i * p.o_row;
  const T c = denominator_gradient(p, i);
  for (int64_t d = 0; d < p.dim; ++d) {
    T sum = c * z[d];
    for (int64_t m = 0; m < p.value_dim; ++m) sum += s[d * p.value_dim + m] * g[m];
    dq[d] = slope(p.map, q[d]) * (sum / p.d[i * p.d_row]);
  }
}

/// R += (a_i / d_i) g_i^T and r += c (a_i / d_i). 1 / d_i goes with a_i, not with g_i: a_i / d_i stays in range where
/// both are tiny.
template <class T>
void add_query(const LinearAttentionBackward<T>& p, int64_t i, T* ds, T* dz) {
  if (is_dead(p, i)) return;
  const T* q = p.q + i * p.q_row;
  const T* g = p.g + i * p.o_row;
  const T c = denominator_gradient(p, i);
  for (int64_t d = 0; d < p.dim; ++d) {
    const T a = phi(p.map, q[d]) / p.d[i * p.d_row];
    dz[d] += c * a;
    for (int64_t m = 0; m < p.value_dim; ++m) ds[d * p.value_dim + m] += a * g[m];
  }
}

/// dk_j = phi'(k_j) (R v_j + r) and dv_j = R^T b_j
template <class T>
void key_gradient(const LinearAttentionBackward<T>& p, int64_t j, const T* ds, const T* dz) {
  T* dk = p.dk + j * p.k_row;
  T* dv = p.dv + j * p.v_row;
  std::fill_n(dk, p.dim, T(0));
  std::fill_n(dv, p.value_dim, T(0));
  if (p.key_mask && !p.key_mask[j]) return;
  const T* k = p.k + j * p.k_row;
  const T* v = p.v + j * p.v_row;
  for (int64_t d = 0; d < p.dim; ++d) {
    const T* row = ds + d * p.value_dim;
    const T b = phi(p.map, k[d]);
    T db = dz[d];
    for (int64_t m = 0; m < p.value_dim; ++m) {
      db += row[m] * v[m];
      dv[m] += row[m] * b;
    }
    dk[d] = slope(p.map, k[d]) * db;
  }
}

/// Two sweeps with one state each: S, z upwards for the queries, R, r downwards for the keys and values.
template <class T>
void backward(const LinearAttentionBackward<T>& p) {
  T* s = p.scratch;
  T* z = s + p.dim * p.value_dim;
  std::fill_n(s, p.dim * p.value_dim + p.dim, T(0));
  if (p.s) std::copy_n(p.s, p.dim * p.value_dim, s);
  if (p.z) std::copy_n(p.z, p.dim, z);
  if (p.causal) {
    for (int64_t i = 0; i < p.queries; ++i) {
      add_key(p, i, s, z);
      query_gradient(p, i, s, z);
    }
    for (int64_t i = p.queries - 1; i >= 0; --i) {
      add_query(p, i, p.ds, p.dz);
      key_gradient(p, i, p.ds, p.dz);
    }
  } else {
    for (int64_t j = 0; j < p.keys; ++j) add_key(p, j, s, z);
    for (int64_t i = 0; i < p.queries; ++i) {
      if (p.dq) query_gradient(p, i, s, z);
      add_query(p, i, p.ds, p.dz);
    }
    for (int64_t j = 0; j < p.keys; ++j) key_gradient(p, j, p.ds, p.dz);
  }
}

int64_t no_scratch(int64_t, int64_t, int64_t, bool) { return 0; }
int64_t one_state(int64_t, int64_t dim, int64_t value_dim, bool) { return dim * value_dim + dim; }

}  // namespace

const LinearAttentionF32 linear_attention_f32 = {forward<float>, backward<float>, no_scratch, one_state};
const LinearAttentionF64 linear_attention_f64 = {forward<double>, backward<double>, no_scratch, one_state};

}  // namespace linnet::plain
