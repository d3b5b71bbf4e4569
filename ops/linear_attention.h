// Linear attention (Katharopoulos et al. 2020, "Transformers are RNNs"): softmax's similarity replaced by phi(q) .
// phi(k), so that time costs O(N) and the past is a state of fixed size.
#pragma once
#include "linnet/autograd/variable.h"
#include "linnet/ops/linear_attention_kernels.h"
#include "linnet/ops/masks.h"

namespace linnet {

struct LinearAttentionOptions {
  FeatureMap feature_map = FeatureMap::elu1;  ///< other maps: apply them to q and k before, with identity here
  bool causal = false;    ///< the forms with a state are causal whatever stands here: the past is all that they have
  bool normalise = true;  ///< false: o_i = S_i^T phi(q_i), undivided
  double eps = 0;         ///< added to the denominator, not negative; 1e-6 for weights of the reference implementation
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
  Precision precision = Precision::full;  ///< bf16: about 1 % of the largest value in an output or a gradient
};

/// The sums over the past: s = sum_j phi(k_j) v_j^T (batch, heads, D, M) and z = sum_j phi(k_j) (batch, heads, D).
/// Undefined ones are zeros. Copying copies the memory, unless a gradient flows through: then the copy is the same
/// value.
struct LinearState {
  Variable s, z;

  LinearState() = default;
  LinearState(Variable sums, Variable normaliser) : s(std::move(sums)), z(std::move(normaliser)) {}
  LinearState(const LinearState& other);
  LinearState(LinearState&&) = default;
  LinearState& operator=(const LinearState& other) { return *this = LinearState(other); }
  LinearState& operator=(LinearState&&) = default;
};

struct LinearAttentionResult {
  Variable out;
  LinearState state;
};

/// With a_i = phi(q_i), b_j = m_j phi(k_j) (m the key mask):
///
///     o_i = (sum_j (a_i . b_j) v_j) / (sum_j a_i . b_j + eps)        j <= i where causal, else all j
///
/// q (batch, queries, heads, D), k (batch, keys, heads, D), v (batch, keys, heads, M) -> (batch, queries, heads, M);
/// equations 5 and 9 of the paper. A row is 0, and so is its gradient, where the query is masked or |denominator| is
/// below the smallest normal number (no key allowed, or every product underflows). Causal wants queries = keys. Kept
/// for the way back: q, k, v, o, the denominators and, on the CPU, a state in 2,048 steps, so that backward reads a
/// piece of all heads after the other; it needs a few D x M states a thread beside the gradients, whatever the length.
/// A GPU needs a state for each segment of rows while it runs, as many as fill it.
Variable linear_attention(const Variable& q, const Variable& k, const Variable& v,
                          const LinearAttentionOptions& options = {});

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), read where they lie; one gradient
/// of the same shape.
Variable linear_attention_qkv(const Variable& qkv, const LinearAttentionOptions& options = {});

/// Causal linear attention that continues from `state` and gives the state after the last step: a sequence run in
/// pieces equals the whole. Gradients flow through both states.
LinearAttentionResult linear_attention_with_state(const Variable& q, const Variable& k, const Variable& v,
                                                  const LinearState& state, const LinearAttentionOptions& options = {});

/// The sums over all keys and nothing else: the state that linear_attention_with_state ends in, for k (batch, keys,
/// heads, D), v (batch, keys, heads, M). Of the options, feature map and keys count. An error while a tape records.
LinearState linear_attention_sums(const Tensor& k, const Tensor& v, const LinearAttentionOptions& options = {});

/// One step of the recurrent form: q, k (batch, heads, D), v and out (batch, heads, M). Adds the step to `state` in
/// place (an undefined state becomes zeros first) and writes `out` (allocated where undefined; it may be the memory of
/// an input). Masks are for one step of time. An error while a tape records: use linear_attention_with_state there.
void linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LinearState& state, Tensor& out,
                           const LinearAttentionOptions& options = {});
/// The same for one fused projection, qkv (batch, 3, heads, dim).
void linear_attention_step_qkv(const Tensor& qkv, LinearState& state, Tensor& out,
                               const LinearAttentionOptions& options = {});

/// What a step reads, with nothing added before: o = (s^T phi(q)) / (z . phi(q) + eps), q (batch, heads, D), out
/// (batch, heads, M), allocated where undefined. For a state that holds all keys, as of a memory that is attended to.
/// Takes a query mask, no key mask. An error while a tape records, and for an undefined state.
void linear_attention_query(const Tensor& q, const LinearState& state, Tensor& out,
                            const LinearAttentionOptions& options = {});

inline void linear_attention_step(const Variable& q, const Variable& k, const Variable& v, LinearState& state,
                                  Tensor& out, const LinearAttentionOptions& options = {}) {
  check_defined("linear_attention_step", q, k, v);
  linear_attention_step(q.value(), k.value(), v.value(), state, out, options);
}
inline void linear_attention_step_qkv(const Variable& qkv, LinearState& state, Tensor& out,
                                      const LinearAttentionOptions& options = {}) {
  check_defined("linear_attention_step_qkv", qkv);
  linear_attention_step_qkv(qkv.value(), state, out, options);
}

}  // namespace linnet
