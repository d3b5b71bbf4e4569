// The attentions' recurrent forms as one writes them: the reference for the other levels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/ops/attention_step_kernels.h"

namespace linnet::plain {
namespace {

template <class T>
T phi(FeatureMap map, T x) {
  if (map == FeatureMap::identity) return x;
  if (map == FeatureMap::relu) return x < 0 ? T(0) : x;
  return x >= 0 ? x + 1 : std::exp(x);
}

template <class T>
void linear(const LinearStep<T>& p) {
  std::fill_n(p.o, p.value_dim, T(0));
  T denominator = p.eps;
  for (int64_t d = 0; d < p.dim; ++d) {
    T* s = p.s + d * p.value_dim;
    if (p.key) {
      const T b = phi(p.map, p.k[d]);
      for (int64_t m = 0; m < p.value_dim; ++m) s[m] += b * p.v[m];
      p.z[d] += b;
    }
    if (p.query) {
      const T a = phi(p.map, p.q[d]);
      for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] += a * s[m];
      denominator += a * p.z[d];
    }
  }
  if (!p.query || !p.normalise) return;
  const bool none = std::abs(denominator) < p.smallest;
  for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] = none ? T(0) : p.o[m] / denominator;
}

template <class T>
void softmax(const SoftmaxStep<T>& p) {
  std::fill_n(p.o, p.value_dim, T(0));
  const auto allowed = [&](int64_t j) { return p.query && (!p.key_mask || p.key_mask[j]); };
  const auto score = [&](int64_t j) {
    T dot = 0;
    for (int64_t d = 0; d < p.dim; ++d) dot += p.q[d] * p.k[j * p.k_row + d];
    return p.scale * dot;
  };
  T largest = -std::numeric_limits<T>::infinity(), sum = 0;
  for (int64_t j = 0; j < p.keys; ++j)
    if (allowed(j)) largest = std::max(largest, score(j));
  for (int64_t j = 0; j < p.keys; ++j) {
    if (!allowed(j)) continue;
    const T weight = std::exp(score(j) - largest);
    sum += weight;
    for (int64_t m = 0; m < p.value_dim; ++m) p.o[m] += weight * p.v[j * p.v_row + m];
  }
  for (int64_t m = 0; m < p.value_dim && sum != 0; ++m) p.o[m] /= sum;
}

}  // namespace

extern const AttentionStepF32 attention_step_f32 = {linear<float>, softmax<float>};
extern const AttentionStepF64 attention_step_f64 = {linear<double>, softmax<double>};
}  // namespace linnet::plain
