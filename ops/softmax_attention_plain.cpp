// The tiles of softmax attention in plain loops.
#include <algorithm>
#include <cmath>

#include "linnet/ops/softmax_attention_kernels.h"

namespace linnet::plain {
namespace {

bool allowed(const ScoreTile& tile, int64_t r, int64_t c) {
  const int64_t distance = int64_t{tile.column_at[c]} - tile.row_at[r];
  if (distance < -tile.band.before || distance > tile.band.after) return false;
  return !tile.pairs || tile.pairs[tile.row_at[r] * tile.pairs_row + tile.column_at[c]];
}

template <class T>
void forward(const ScoreTile& tile, T* s, T* max, T* sum, T* out, int64_t width) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, out += width) {
    const T before = max[r];
    bool any = false;
    for (int64_t c = 0; c < tile.columns; ++c) {
      if (!allowed(tile, r, c)) continue;
      max[r] = std::max(max[r], s[c]);
      any = true;
    }
    if (!any) {
      std::fill_n(s, tile.columns, T(0));
      continue;
    }
    const T shrink = std::exp(before - max[r]);  // 0 at the first tile, where `before` is -infinity
    sum[r] *= shrink;
    for (int64_t m = 0; m < width; ++m) out[m] *= shrink;
    for (int64_t c = 0; c < tile.columns; ++c) {
      s[c] = allowed(tile, r, c) ? std::exp(s[c] - max[r]) : T(0);
      sum[r] += s[c];
    }
  }
}

template <class T>
void backward(const ScoreTile& tile, T* s, T* dp, const T* lse, const T* delta) {
  for (int64_t r = 0; r < tile.rows; ++r, s += tile.columns, dp += tile.columns) {
    for (int64_t c = 0; c < tile.columns; ++c) {
      const bool counts = allowed(tile, r, c);
      s[c] = counts ? std::exp(s[c] - lse[r]) : T(0);
      dp[c] = counts ? s[c] * (dp[c] - delta[r]) : T(0);
    }
  }
}

}  // namespace

const SoftmaxAttentionF32 softmax_attention_f32 = {forward<float>, backward<float>};
const SoftmaxAttentionF64 softmax_attention_f64 = {forward<double>, backward<double>};

}  // namespace linnet::plain
