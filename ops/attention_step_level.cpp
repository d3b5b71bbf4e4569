// The attentions' recurrent forms for one level.
#include "linnet/core/functors.h"
#include "linnet/core/vectors.h"
#include "linnet/ops/attention_step_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

constexpr int64_t kChunk = 64;  // features, or keys, at once: whole vectors

/// f(first, number of vectors as a type) for n columns in blocks of four, two or one vectors; the rest after them is
/// left: returns where it begins.
template <int kMost>
struct Vectors {
  static constexpr int count = kMost;
};
template <class T, int kMost = 4, class F>
int64_t blocks(int64_t n, F f, int64_t first = 0) {
  for (; first + kMost * kLanes<T> <= n; first += kMost * kLanes<T>) f(first, Vectors<kMost>());
  if constexpr (kMost > 1) return blocks<T, kMost / 2>(n, f, first);
  return first;
}

// ---- linear: s += phi(k) v^T, z += phi(k), o = s^T phi(q) / (z . phi(q) + eps)

template <class T>
void features(FeatureMap map, int64_t n, const T* __restrict x, T* __restrict y) {
  if (map == FeatureMap::elu1) {
    for (int64_t i = 0; i < n; ++i) y[i] = Elu1<T>{}.f(x[i]);
  } else if (map == FeatureMap::relu) {
    for (int64_t i = 0; i < n; ++i) y[i] = Relu<T>{}.f(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  }
}

/// Rows of s (n of them) += b v^T where there is a key, else s is only read; o += s^T a; for kVectors vectors of
/// columns.
template <class T, int kVectors, bool kKey>
void columns(int64_t n, const T* a, const T* b, const T* v, T* s, int64_t s_row, T* o) {
  Plain<T> value[kVectors], sum[kVectors];
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    if constexpr (kKey) value[j] = at(v + j * kLanes<T>);
    sum[j] = at(o + j * kLanes<T>);
  }
  for (int64_t d = 0; d < n; ++d, s += s_row) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      Plain<T> now = at(s + j * kLanes<T>);
      if constexpr (kKey) at(s + j * kLanes<T>) = now = now + b[d] * value[j];
      sum[j] += a[d] * now;
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) at(o + j * kLanes<T>) = sum[j];
}

template <class T>
void linear(const LinearStep<T>& p) {
  T a[kChunk] = {}, b[kChunk] = {};  // phi(q) and phi(k); zeros where masked
  for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] = 0;
  Plain<T> products = {};
  for (int64_t d = 0; d < p.dim; d += kChunk) {
    const int64_t n = p.dim - d < kChunk ? p.dim - d : kChunk;
    if (p.query) features(p.map, n, p.q + d, a);
    if (p.key) features(p.map, n, p.k + d, b);
    for (int64_t i = n; i < kChunk; ++i) a[i] = b[i] = 0;
    each<T>(n, [&](int64_t i, int64_t count) {
      const Plain<T> z = load(p.z + d + i, count) + at(b + i);
      if (p.key) store<T>(p.z + d + i, count, z);
      products += at(a + i) * z;
    });
    T* s = p.s + d * p.value_dim;
    const int64_t rest = blocks<T>(p.value_dim, [&](int64_t m, auto vectors) {
      if (p.key)
        columns<T, vectors.count, true>(n, a, b, p.v + m, s + m, p.value_dim, p.o + m);
      else
        columns<T, vectors.count, false>(n, a, b, nullptr, s + m, p.value_dim, p.o + m);
    });
    for (int64_t i = 0; i < n && rest < p.value_dim; ++i, s += p.value_dim) {
      for (int64_t m = rest; m < p.value_dim; ++m) {
        if (p.key) s[m] += b[i] * p.v[m];
        p.o[m] += a[i] * s[m];
      }
    }
  }
  const T denominator = sums<T, 1>(&products)[0] + p.eps;
  const bool none = !p.query || (p.normalise && abs(denominator) < p.smallest);
  const T by = p.normalise ? 1 / denominator : T(1);
  for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] = none ? T(0) : p.o[m] * by;
}

// ---- softmax: kChunk keys after the other, the output scaled anew where a chunk has a larger score than all before

/// scores[j] = scale q . k_j for n keys.
template <class T>
void score(const SoftmaxStep<T>& p, int64_t first, int64_t n, T* scores) {
  constexpr int kKeys = kLanes<T> < 8 ? kLanes<T> : 8;
  for (int64_t j = 0; j < n; j += kKeys) {
    Plain<T> products[kKeys];
#pragma GCC unroll 8
    for (int i = 0; i < kKeys; ++i) {
      const T* k = p.k + (first + (j + i < n ? j + i : n - 1)) * p.k_row;
      products[i] = Plain<T>{};
      each<T>(p.dim, [&](int64_t d, int64_t count) { products[i] += load(p.q + d, count) * load(k + d, count); });
    }
    store<T>(scores + j, kKeys, sums<T, kKeys>(products) * p.scale);
  }
}

/// o += sum_j weights[j] v_j, for the keys that take part.
template <class T>
void add_values(const SoftmaxStep<T>& p, const uint8_t* mask, int64_t first, int64_t n, const T* weights) {
  const T* v = p.v + first * p.v_row;
  const int64_t rest = blocks<T>(p.value_dim, [&](int64_t m, auto vectors) {
    Plain<T> sum[vectors.count];
#pragma GCC unroll 4
    for (int x = 0; x < vectors.count; ++x) sum[x] = at(p.o + m + x * kLanes<T>);
    for (int64_t j = 0; j < n; ++j) {
      if (mask && !mask[j]) continue;
#pragma GCC unroll 4
      for (int x = 0; x < vectors.count; ++x) sum[x] += weights[j] * at(v + j * p.v_row + m + x * kLanes<T>);
    }
#pragma GCC unroll 4
    for (int x = 0; x < vectors.count; ++x) at(p.o + m + x * kLanes<T>) = sum[x];
  });
  for (int64_t j = 0; j < n; ++j) {
    if (mask && !mask[j]) continue;
    for (int64_t m = rest; m < p.value_dim; ++m) p.o[m] += weights[j] * v[j * p.v_row + m];
  }
}

template <class T>
void softmax(const SoftmaxStep<T>& p) {
  for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] = 0;
  if (!p.query) return;
  const T infinity = static_cast<T>(__builtin_inf());
  T largest = -infinity, sum = 0;
  for (int64_t first = 0; first < p.keys; first += kChunk) {
    const int64_t n = p.keys - first < kChunk ? p.keys - first : kChunk;
    const uint8_t* mask = p.key_mask ? p.key_mask + first : nullptr;
    T weights[kChunk + kLanes<T>];
    score(p, first, n, weights);
    T top = largest;
    int64_t allowed = 0;
    for (int64_t j = 0; j < n; ++j) {
      if (mask && !mask[j]) continue;
      top = weights[j] > top ? weights[j] : top;
      ++allowed;
    }
    if (allowed == 0) continue;
    if (top > largest) {
      const T by = largest == -infinity ? T(0) : exp(largest - top);
      for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] *= by;
      sum *= by;
      largest = top;
    }
    for (int64_t j = 0; j < n; ++j) weights[j] = exp(weights[j] - largest);
    for (int64_t j = 0; j < n; ++j) sum += mask && !mask[j] ? T(0) : weights[j];
    add_values(p, mask, first, n, weights);
  }
  for (int64_t m = 0; m < p.value_dim && sum != 0; ++m) p.o[m] /= sum;
}

}  // namespace

extern const AttentionStepF32 attention_step_f32 = {linear<float>, softmax<float>};
extern const AttentionStepF64 attention_step_f64 = {linear<double>, softmax<double>};
}  // namespace linnet::LINNET_LEVEL
