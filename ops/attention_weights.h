// The weights of attentions, for those who want to look at them: the attentions themselves never hold them all.
#pragma once
#include "linnet/ops/efficient_attention.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet {

/// w_ij with o_i = sum_j w_ij v_j: phi(q_i) . phi(k_j) / (sum_j phi(q_i) . phi(k_j) + eps) of linear attention
/// (equation 4 of Katharopoulos et al. 2020), softmax's probabilities, rho_q(q_i) . rho_k(k)_j of efficient
/// attention.
///
/// q (batch, queries, heads, D), k (batch, keys, heads, D) -> (batch, queries, heads, keys), by the attention itself
/// over values that are the unit vectors: it takes all its options, fails as it does, and keys^2 numbers a head. Rows
/// sum to 1 (but for eps, and linear attention's without normalise); one with no allowed key is 0. Values only, no
/// gradient.
Tensor attention_weights(const Tensor& q, const Tensor& k, const LinearAttentionOptions& options);
Tensor attention_weights(const Tensor& q, const Tensor& k, const SoftmaxAttentionOptions& options);
Tensor attention_weights(const Tensor& q, const Tensor& k, const EfficientAttentionOptions& options);

}  // namespace linnet
