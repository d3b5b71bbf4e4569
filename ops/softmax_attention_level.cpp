// The tiles of softmax attention for one level: per row a maximum, an exponential and a sum, each one loop.
#include "linnet/core/math.h"
#include "linnet/ops/softmax_attention_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
struct Wide {
  typedef T type __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
  static constexpr int lanes = 64 / sizeof(T);
};

template <class T>
T largest(int64_t n, const T* x, T start) {
  using V = typename Wide<T>::type;
  constexpr int kLanes = Wide<T>::lanes;
  int64_t i = 0;
  if (n >= kLanes) {
    V wide = *reinterpret_cast<const V*>(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) {
      const V next = *reinterpret_cast<const V*>(x + i);
      wide = next > wide ? next : wide;
    }
    for (int l = 0; l < kLanes; ++l) start = wide[l] > start ? wide[l] : start;
  }
  for (; i < n; ++i) start = x[i] > start ? x[i] : start;
  return start;
}

template <class T>
T total(int64_t n, const T* x) {
  using V = typename Wide<T>::type;
  constexpr int kLanes = Wide<T>::lanes;
  V wide = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) wide += *reinterpret_cast<const V*>(x + i);
  T sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += wide[l];
  for (; i < n; ++i) sum += x[i];
  return sum;
}

/// How many leading columns the row may look at, pairs aside.
int64_t causal_columns(const ScoreTile& tile, int64_t r) {
  int64_t n = tile.columns;
  if (tile.causal) {
    while (n > 0 && tile.column_at[n - 1] > tile.row_at[r]) --n;
  }
  return n;
}

/// Puts `value` where the pair mask forbids; returns whether anything is left.
template <class T>
bool mask_pairs(const ScoreTile& tile, int64_t r, int64_t n, T* x, T value) {
  if (!tile.pairs) return n > 0;
  const uint8_t* pairs = tile.pairs + tile.row_at[r] * tile.pairs_row;
  bool any = false;
  for (int64_t c = 0; c < n; ++c) {
    const bool counts = pairs[tile.column_at[c]];
    if (!counts) x[c] = value;
    any = any || counts;
  }
  return any;
}

template <class T>
void clear(int64_t begin, int64_t end, T* x) {
  for (int64_t c = begin; c < end; ++c) x[c] = 0;
}

template <class T>
void forward(const ScoreTile& tile, T* s, T* max, T* sum, T* out, int64_t width) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, out += width) {
    const int64_t n = causal_columns(tile, r);
    if (!mask_pairs(tile, r, n, s, -static_cast<T>(__builtin_inf()))) {
      clear(0, tile.columns, s);
      continue;
    }
    const T m = largest(n, s, max[r]);
    const T shrink = exp_nonpositive(max[r] - m);  // 0 at the first tile, where max is -infinity
    for (int64_t c = 0; c < n; ++c) s[c] = exp_nonpositive(s[c] - m);
    mask_pairs(tile, r, n, s, T(0));
    clear(n, tile.columns, s);
    sum[r] = sum[r] * shrink + total(n, s);
    max[r] = m;
    if (shrink != 1) {
      for (int64_t d = 0; d < width; ++d) out[d] *= shrink;
    }
  }
}

template <class T>
void backward(const ScoreTile& tile, T* __restrict s, T* __restrict dp, const T* lse, const T* delta) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, dp += tile.columns) {
    const int64_t n = causal_columns(tile, r);
    const T top = lse[r], mean = delta[r];
    for (int64_t c = 0; c < n; ++c) {
      s[c] = exp_nonpositive(s[c] - top);
      dp[c] = s[c] * (dp[c] - mean);
    }
    mask_pairs(tile, r, n, s, T(0));
    mask_pairs(tile, r, n, dp, T(0));
    clear(n, tile.columns, s);
    clear(n, tile.columns, dp);
  }
}

}  // namespace

extern const SoftmaxAttentionF32 softmax_attention_f32 = {forward<float>, backward<float>};
extern const SoftmaxAttentionF64 softmax_attention_f64 = {forward<double>, backward<double>};

}  // namespace linnet::LINNET_LEVEL
