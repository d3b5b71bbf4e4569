// Softmax attention (Vaswani et al. 2017), the companion of linear attention: every query weighs every key that it may
// look at. Time N^2, memory N: tiles of scores are made, used and dropped, and made again on the way back.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"
#include "linnet/ops/masks.h"

namespace linnet {

struct SoftmaxAttentionOptions {
  bool causal = false;               ///< a step is causal whatever stands here: its past is all that it has
  std::optional<double> scale = {};  ///< 1 / sqrt(D) where not given
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
  const PairMask* pairs = nullptr;
};

/// p_ij = softmax over the allowed j of (scale q_i . k_j),  o_i = sum_j p_ij v_j
///
/// q (batch, queries, heads, D), k (batch, keys, heads, D), v (batch, keys, heads, M) -> (batch, queries, heads, M).
/// Masks and causal combine: a key takes part where all allow it; causal wants queries = keys. A row with no allowed
/// key gives output 0 and gradient 0; NaN in a masked key or value changes nothing. Kept for the way back: q, k, v, o
/// and log(sum exp) of each row.
Variable softmax_attention(const Variable& q, const Variable& k, const Variable& v,
                           const SoftmaxAttentionOptions& options = {});

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), with one gradient of that shape.
Variable softmax_attention_qkv(const Variable& qkv, const SoftmaxAttentionOptions& options = {});

/// The keys and values of the past: k (batch, capacity, heads, D) and v (batch, capacity, heads, M), `length` steps of
/// which are used. A copy shares the memory until one of the two takes a step. Undefined: empty.
struct KeyValueCache {
  Tensor k, v;
  int64_t length = 0;
};

/// One step of causal attention: q, k (batch, heads, D), v and out (batch, heads, M). Appends k and v to the cache,
/// which doubles where it is full, and writes `out` (allocated where undefined; it may be the memory of an input). A
/// key mask covers the past and this step. An error while a tape records.
void softmax_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, KeyValueCache& cache, Tensor& out,
                            const SoftmaxAttentionOptions& options = {});
/// The same for one fused projection, qkv (batch, 3, heads, dim).
void softmax_attention_step_qkv(const Tensor& qkv, KeyValueCache& cache, Tensor& out,
                                const SoftmaxAttentionOptions& options = {});

/// What a step reads, with nothing appended before: q (batch, heads, D) looks at all that the cache holds; out (batch,
/// heads, M), allocated where undefined. For the keys and values of a memory that is attended to. An error while a tape
/// records, and for an undefined cache.
void softmax_attention_query(const Tensor& q, const KeyValueCache& cache, Tensor& out,
                             const SoftmaxAttentionOptions& options = {});

inline void softmax_attention_step(const Variable& q, const Variable& k, const Variable& v, KeyValueCache& cache,
                                   Tensor& out, const SoftmaxAttentionOptions& options = {}) {
  check_defined("softmax_attention_step", q, k, v);
  softmax_attention_step(q.value(), k.value(), v.value(), cache, out, options);
}
inline void softmax_attention_step_qkv(const Variable& qkv, KeyValueCache& cache, Tensor& out,
                                       const SoftmaxAttentionOptions& options = {}) {
  check_defined("softmax_attention_step_qkv", qkv);
  softmax_attention_step_qkv(qkv.value(), cache, out, options);
}

}  // namespace linnet
