#include "linnet/ops/efficient_attention.h"

#include <limits>

#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/compare.h"
#include "linnet/ops/shape_ops.h"
#include "linnet/ops/softmax.h"

namespace linnet {
namespace {

void check_open(const char* op, const EfficientAttentionOptions& options) {
  LINNET_CHECK(!options.causal, op,
               ": cannot be causal, since its softmax over positions sees all keys at once; linear_attention can");
}

/// x (batch, time, heads, dim) where the mask allows, `otherwise` elsewhere.
Variable masked(const Tensor& steps, const Variable& x, double otherwise) {
  return where(steps.reshape(Shape{x.size(0), x.size(1), 1, 1}), x, otherwise);
}

/// rho_k: the softmax over the keys that the mask allows.
Variable over_time(const char* op, const Variable& k, const EfficientAttentionOptions& options) {
  if (!options.keys) return softmax(k, 1);
  const Tensor steps = options.keys->steps(op, "key", k.size(0), k.size(1), k.device());
  // The least finite number, for a tape that looks for infinities. Where no key is allowed, none is read afterwards.
  const double least =
      k.dtype() == Dtype::f32 ? std::numeric_limits<float>::lowest() : std::numeric_limits<double>::lowest();
  return softmax(masked(steps, k, least), 1);
}

Variable attend(const char* op, Variable q, const Variable& k, const Variable& v,
                const EfficientAttentionOptions& options) {
  if (options.queries) q = masked(options.queries->steps(op, "query", q.size(0), q.size(1), q.device()), q, 0);
  return linear_attention(
      softmax(q, -1), over_time(op, k, options), v,
      {.feature_map = FeatureMap::identity, .normalise = false, .keys = options.keys, .queries = options.queries});
}

}  // namespace

Variable efficient_attention(const Variable& q, const Variable& k, const Variable& v,
                             const EfficientAttentionOptions& options) {
  const char* op = "efficient_attention";
  check_defined(op, q, k, v);
  check_open(op, options);
  check_attention(op, q.value(), k.value(), v.value(), false);
  return attend(op, q, k, v, options);
}

Variable efficient_attention_qkv(const Variable& qkv, const EfficientAttentionOptions& options) {
  const char* op = "efficient_attention_qkv";
  check_defined(op, qkv);
  check_open(op, options);
  const AttentionSizes n = check_fused_attention(op, qkv.value());
  const auto part = [&](int64_t i) {
    return reshape(slice(qkv, 2, i, i + 1), Shape{n.batch, n.queries, n.heads, n.dim});
  };
  return attend(op, part(0), part(1), part(2), options);
}

LinearState efficient_attention_sums(const Tensor& k, const Tensor& v, const EfficientAttentionOptions& options) {
  const char* op = "efficient_attention_sums";
  check_defined(op, k, v);
  check_open(op, options);
  LINNET_CHECK(!options.queries, op, ": takes a key mask, not a query mask: there are no queries");
  check_attention(op, k, k, v, false);
  return linear_attention_sums(over_time(op, k, options).value(), v,
                               {.feature_map = FeatureMap::identity, .keys = options.keys});
}

void efficient_attention_query(const Tensor& q, const LinearState& state, Tensor& out) {
  check_defined("efficient_attention_query", q);
  linear_attention_query(softmax(q, -1).value(), state, out, {.feature_map = FeatureMap::identity, .normalise = false});
}

}  // namespace linnet
