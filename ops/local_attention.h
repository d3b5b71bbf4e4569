// Local attention: softmax attention over a band (Beltagy et al. 2020, "Longformer", section 3.1, sliding window). Time
// grows with N times the window, memory with N: only the tiles of scores that the band meets are made.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"
#include "linnet/ops/masks.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet {

struct LocalAttentionOptions {
  int64_t window = -1;               ///< how many steps away a key may lie, 0 or more; there is no default
  bool causal = false;               ///< a step is causal whatever stands here: its past is all that it has
  std::optional<double> scale = {};  ///< 1 / sqrt(D) where not given
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
};

/// o_i = sum_j p_ij v_j,  p_ij = softmax over the allowed j of (scale q_i . k_j)
///
/// with |i - j| <= window, or i - window <= j <= i where causal. q, k (batch, time, heads, D), v (batch, time, heads,
/// M)
/// -> (batch, time, heads, M). A row with no allowed key gives output 0 and gradient 0; NaN in a masked key or value
/// changes nothing. A window of the whole time or more is softmax_attention. Kept for the way back: q, k, v, o and
/// log(sum exp) of each row. Errors: a negative window, a k of another time than q, and those of softmax_attention.
Variable local_attention(const Variable& q, const Variable& k, const Variable& v, const LocalAttentionOptions& options);

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), with one gradient of that shape.
Variable local_attention_qkv(const Variable& qkv, const LocalAttentionOptions& options);

/// The last window + 1 keys and values. Until there are so many, they lie in the order of time; afterwards in a ring
/// that begins at `oldest`, which the next step overwrites. A copy shares the memory until one of the two takes a step.
struct LocalCache {
  KeyValueCache ring;
  int64_t oldest = 0;
};

/// One step of causal local attention: q, k (batch, heads, D), v and out (batch, heads, M). Puts k and v into the cache
/// and writes `out` (allocated where undefined; it may be the memory of an input). Errors: a key mask, a cache of
/// another window, a tape that records.
void local_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LocalCache& cache, Tensor& out,
                          const LocalAttentionOptions& options);
/// The same for one fused projection, qkv (batch, 3, heads, dim).
void local_attention_step_qkv(const Tensor& qkv, LocalCache& cache, Tensor& out, const LocalAttentionOptions& options);

inline void local_attention_step(const Variable& q, const Variable& k, const Variable& v, LocalCache& cache,
                                 Tensor& out, const LocalAttentionOptions& options) {
  check_defined("local_attention_step", q, k, v);
  local_attention_step(q.value(), k.value(), v.value(), cache, out, options);
}
inline void local_attention_step_qkv(const Variable& qkv, LocalCache& cache, Tensor& out,
                                     const LocalAttentionOptions& options) {
  check_defined("local_attention_step_qkv", qkv);
  local_attention_step_qkv(qkv.value(), cache, out, options);
}

}  // namespace linnet
