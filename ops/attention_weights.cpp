#include "linnet/ops/attention_weights.h"

#include "linnet/core/compute.h"
#include "linnet/ops/attention_shapes.h"

namespace linnet {
namespace {

/// Values (batch, keys, heads, keys): the j-th of every head is the j-th unit vector.
Tensor unit_values(const Tensor& q, const Tensor& k, bool causal) {
  check_defined("attention_weights", q, k);
  check_attention("attention_weights", q, k, k, causal);
  const int64_t keys = k.size(1);
  const Tensor places = Tensor::arange(keys, Dtype::i32, k.device());
  const Tensor units =
      compute::compare(CompareOp::Equal, places.reshape({1, keys, 1, 1}), places.reshape({1, 1, 1, keys}));
  return compute::broadcast_to(units.to(k.dtype()), {k.size(0), keys, k.size(2), keys});
}

}  // namespace

Tensor attention_weights(const Tensor& q, const Tensor& k, const LinearAttentionOptions& options) {
  return linear_attention(q, k, unit_values(q, k, options.causal), options).value();
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const SoftmaxAttentionOptions& options) {
  return softmax_attention(q, k, unit_values(q, k, options.causal), options).value();
}

Tensor attention_weights(const Tensor& q, const Tensor& k, const EfficientAttentionOptions& options) {
  return efficient_attention(q, k, unit_values(q, k, options.causal), options).value();
}

}  // namespace linnet
