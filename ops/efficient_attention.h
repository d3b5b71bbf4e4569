// Efficient attention (Shen, Zhang, Zhao, Yi and Li 2018, "Efficient Attention: Attention with Linear Complexities"):
// the softmax of all pairs replaced by one over the features of each query and one over the positions of the keys, so
// that time and memory grow with N.
#pragma once
#include "linnet/autograd/variable.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/masks.h"

namespace linnet {

struct EfficientAttentionOptions {
  bool causal = false;  ///< an error where true: the softmax over positions sees all keys at once
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
};

/// o_i = rho_q(q_i) (sum_j rho_k(k)_j v_j^T)
///
/// with rho_q the softmax over the D features of a query and rho_k, for every feature, the softmax over the keys that
/// the mask allows: equation 3 of the paper with the softmax normalisation of section 3.2. q (batch, queries, heads,
/// D), k (batch, keys, heads, D), v (batch, keys, heads, M) -> (batch, queries, heads, M). What a mask leaves out is
/// never read. A masked query, or a sample with no allowed key, gives output 0 and gradient 0. Composed of where,
/// softmax and linear_attention. Errors: causal, and those of linear_attention.
Variable efficient_attention(const Variable& q, const Variable& k, const Variable& v,
                             const EfficientAttentionOptions& options = {});

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), with one gradient of that shape.
Variable efficient_attention_qkv(const Variable& qkv, const EfficientAttentionOptions& options = {});

/// All that a query needs of the keys: s = sum_j rho_k(k)_j v_j^T (batch, heads, D, M), and as z the sums of rho_k, 1
/// where a key is allowed. For k and v as above. Takes a key mask alone. An error while a tape records.
LinearState efficient_attention_sums(const Tensor& k, const Tensor& v, const EfficientAttentionOptions& options = {});
/// One query: o = rho_q(q) s, q (batch, heads, D), out (batch, heads, M), allocated where undefined. An error while a
/// tape records.
void efficient_attention_query(const Tensor& q, const LinearState& state, Tensor& out);

}  // namespace linnet
