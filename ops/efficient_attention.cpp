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

Variable attend(const char* op, Variable q, Variable k, const Variable& v, const EfficientAttentionOptions& options) {
  if (options.queries) q = masked(options.queries->steps(op, "query", q.size(0), q.size(1), q.device()), q, 0);
  if (options.keys)
    k = masked(options.keys->steps(op, "key", k.size(0), k.size(1), k.device()), k,
               -std::numeric_limits<double>::infinity());
  return linear_attention(
      softmax(q, -1), softmax(k, 1), v,
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

}  // namespace linnet
