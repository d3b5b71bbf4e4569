// The kernels of softmax attention: what happens to one tile of scores between its matrix products.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

/// How far before and after its query a key may lie, in steps.
struct Band {
  int64_t before, after;
};

/// Which scores of a tile count. Columns ascend in time.
struct ScoreTile {
  int64_t rows, columns;
  const int32_t *row_at, *column_at;  // steps of the queries and of the keys
  Band band;                          // a key outside of it is masked
  const uint8_t* pairs;               // the whole pair mask, or nullptr
  int64_t pairs_row;
};

template <class T>
struct SoftmaxAttentionKernels {
  /// One more tile of a running softmax. In: scores s. Out: s = exp(s - max), exactly 0 where masked. Per row: max and
  /// sum go on, and out (rows x width) is scaled to the new max.
  void (*forward)(const ScoreTile& tile, T* s, T* max, T* sum, T* out, int64_t width);
  /// In: scores s, gradients of the probabilities dp. Out: s = p = exp(s - lse), dp = p (dp - delta), both exactly 0
  /// where masked.
  void (*backward)(const ScoreTile& tile, T* s, T* dp, const T* lse, const T* delta);
};

using SoftmaxAttentionF32 = SoftmaxAttentionKernels<float>;
using SoftmaxAttentionF64 = SoftmaxAttentionKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(SoftmaxAttentionF32, softmax_attention_f32)
LINNET_DECLARE_LEVELS(SoftmaxAttentionF64, softmax_attention_f64)
