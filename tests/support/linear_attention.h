// Helpers of the linear attention tests: the quadratic form with the op's own options.
#pragma once
#include "linnet/ops/linear_attention.h"
#include "support/attention.h"
#include "support/levels.h"

namespace linnet {

inline double feature(FeatureMap map, double x) {
  if (map == FeatureMap::elu1) return x >= 0 ? x + 1 : std::exp(x);
  return map == FeatureMap::relu ? std::max(x, 0.0) : x;
}

/// The quadratic form of linear attention.
inline Tensor quadratic(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttentionOptions& options) {
  ReferenceMasks masks;
  masks.causal = options.causal;
  if (options.keys) masks.keys = options.keys->steps("test", "key", k.size(0), k.size(1), k.device());
  if (options.queries) masks.queries = options.queries->steps("test", "query", q.size(0), q.size(1), q.device());
  const auto similarity = [&](const double* a, const double* b, int64_t dim) {
    double sum = 0;
    for (int64_t d = 0; d < dim; ++d) sum += feature(options.feature_map, a[d]) * feature(options.feature_map, b[d]);
    return sum;
  };
  return quadratic_attention(q, k, v, masks, similarity, options.normalise, options.eps);
}

}  // namespace linnet
