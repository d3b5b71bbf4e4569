// Clustered attention by its definition, O(N^2) and in double, and clusters to try it with.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "linnet/ops/clustered_attention.h"

namespace linnet::test {

using Rows = std::vector<std::vector<double>>;

/// The steps of head h of sample b.
inline Rows rows_of_head(const Tensor& x_any, int64_t b, int64_t h) {
  const Tensor x = x_any.to(Device::cpu).to(Dtype::f64);
  Rows rows;
  for (int64_t t = 0; t < x.size(1); ++t) {
    const double* from = x.data<double>() + ((b * x.size(1) + t) * x.size(2) + h) * x.size(3);
    rows.emplace_back(from, from + x.size(3));
  }
  return rows;
}

/// softmax_j(scale q . k_j) over the j that are allowed; all 0 where none is.
inline std::vector<double> softmax_over(const std::vector<double>& q, const Rows& k, double scale,
                                        const std::vector<bool>& allowed) {
  std::vector<double> p(k.size());
  double sum = 0;
  for (size_t j = 0; j < k.size(); ++j)
    if (allowed[j]) sum += p[j] = std::exp(scale * std::inner_product(q.begin(), q.end(), k[j].begin(), 0.0));
  for (double& each : p) each = sum > 0 ? each / sum : 0;
  return p;
}

inline Tensor clustered_by_definition(const Tensor& q_all, const Tensor& k_all, const Tensor& v_all,
                                      const ClusteredAttentionOptions& options) {
  const int64_t batch = q_all.size(0), queries = q_all.size(1), keys = k_all.size(1), heads = q_all.size(2),
                dim = q_all.size(3), width = v_all.size(3);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(dim)));
  const Tensor groups = options.groups->to(Device::cpu);
  Tensor out = Tensor::zeros({batch, queries, heads, width}, Dtype::f64, Device::cpu);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const Rows q = rows_of_head(q_all, b, h), k = rows_of_head(k_all, b, h), v = rows_of_head(v_all, b, h);
      std::vector<bool> key(k.size(), true), query(q.size(), true);
      for (size_t j = 0; options.keys && j < key.size(); ++j)
        key[j] = options.keys->steps("test", "key", batch, keys, k_all.device())
                     .to(Device::cpu)
                     .data<uint8_t>()[size_t(b * keys) + j];
      for (size_t i = 0; options.queries && i < query.size(); ++i)
        query[i] = options.queries->steps("test", "query", batch, queries, q_all.device())
                       .to(Device::cpu)
                       .data<uint8_t>()[size_t(b * queries) + i];
      const auto group = [&](size_t i) {
        return groups.data<int32_t>()[(b * queries + static_cast<int64_t>(i)) * heads + h];
      };
      for (size_t i = 0; i < q.size(); ++i) {
        if (!query[i]) continue;
        std::vector<double> mean(static_cast<size_t>(dim));
        double members = 0;
        for (size_t other = 0; other < q.size(); ++other) {
          if (!query[other] || group(other) != group(i)) continue;
          ++members;
          for (size_t d = 0; d < mean.size(); ++d) mean[d] += q[other][d];
        }
        for (double& each : mean) each /= members;
        const std::vector<double> shared = softmax_over(mean, k, scale, key);
        std::vector<size_t> order;
        for (size_t j = 0; j < key.size(); ++j)
          if (key[j]) order.push_back(j);
        std::stable_sort(order.begin(), order.end(), [&](size_t s, size_t t) { return shared[s] > shared[t]; });
        order.resize(std::min(order.size(), static_cast<size_t>(options.topk)));
        std::vector<bool> top(k.size());
        double mass = 0;
        for (const size_t j : order) {
          top[j] = !options.causal || j <= i;
          mass += shared[j];
        }
        const std::vector<double> own = softmax_over(q[i], k, scale, top);
        double* const o = out.mutable_data<double>() + ((b * queries + static_cast<int64_t>(i)) * heads + h) * width;
        for (size_t j = 0; j < k.size(); ++j) {
          if (!key[j]) continue;
          const double weight = options.causal ? own[j] : top[j] ? mass * own[j] : shared[j];
          for (size_t m = 0; m < v[j].size(); ++m) o[m] += weight * v[j][m];
        }
      }
    }
  return out;
}

/// i32 clusters, below `clusters`, of (batch, queries, heads); some may be empty.
inline Tensor random_groups(const Shape& shape, int64_t clusters, uint64_t seed = 9) {
  Generator generator{seed, 0, 0};
  std::vector<int32_t> values(static_cast<size_t>(shape.numel()));
  for (int32_t& value : values) value = static_cast<int32_t>(generator.below(clusters));
  return Tensor::from(values, shape);
}

}  // namespace linnet::test
