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

struct Columns {
  int64_t begin, end;
};

/// The columns that the row may look at, pairs aside.
Columns columns_of(const ScoreTile& tile, int64_t r) {
  const int64_t at = tile.row_at[r];
  Columns n{0, tile.columns};
  while (n.end > 0 && tile.column_at[n.end - 1] > at + tile.band.after) --n.end;
  while (n.begin < n.end && tile.column_at[n.begin] < at - tile.band.before) ++n.begin;
  return n;
}

/// Puts `value` where the pair mask forbids; returns whether anything is left.
template <class T>
bool mask_pairs(const ScoreTile& tile, int64_t r, Columns n, T* x, T value) {
  if (!tile.pairs) return n.begin < n.end;
  const uint8_t* pairs = tile.pairs + tile.row_at[r] * tile.pairs_row;
  bool any = false;
  for (int64_t c = n.begin; c < n.end; ++c) {
    const bool counts = pairs[tile.column_at[c]];
    if (!counts) x[c] = value;
    any = any || counts;
  }
  return any;
}

template <class T>
void clear_others(const ScoreTile& tile, Columns n, T* x) {
  for (int64_t c = 0; c < n.begin; ++c) x[c] = 0;
  for (int64_t c = n.end; c < tile.columns; ++c) x[c] = 0;
}

template <class T>
void forward(const ScoreTile& tile, T* s, T* max, T* sum, T* out, int64_t width) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, out += width) {
    const Columns n = columns_of(tile, r);
    if (!mask_pairs(tile, r, n, s, -static_cast<T>(__builtin_inf()))) {
      clear_others(tile, {0, 0}, s);
      continue;
    }
    const T m = largest(n.end - n.begin, s + n.begin, max[r]);
    const T shrink = exp_nonpositive(max[r] - m);  // 0 at the first tile, where max is -infinity
    for (int64_t c = n.begin; c < n.end; ++c) s[c] = exp_nonpositive(s[c] - m);
    mask_pairs(tile, r, n, s, T(0));
    clear_others(tile, n, s);
    sum[r] = sum[r] * shrink + total(n.end - n.begin, s + n.begin);
    max[r] = m;
    if (shrink != 1) {
      for (int64_t d = 0; d < width; ++d) out[d] *= shrink;
    }
  }
}

template <class T>
void backward(const ScoreTile& tile, T* __restrict s, T* __restrict dp, const T* lse, const T* delta) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, dp += tile.columns) {
    const Columns n = columns_of(tile, r);
    const T top = lse[r], mean = delta[r];
    for (int64_t c = n.begin; c < n.end; ++c) {
      s[c] = exp_nonpositive(s[c] - top);
      dp[c] = s[c] * (dp[c] - mean);
    }
    mask_pairs(tile, r, n, s, T(0));
    mask_pairs(tile, r, n, dp, T(0));
    clear_others(tile, n, s);
    clear_others(tile, n, dp);
  }
}

}  // namespace

extern const SoftmaxAttentionF32 softmax_attention_f32 = {forward<float>, backward<float>};
extern const SoftmaxAttentionF64 softmax_attention_f64 = {forward<double>, backward<double>};

}  // namespace linnet::LINNET_LEVEL
