// LSH attention by its definition, O(N^2) and in double, and hashes to try it with.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "linnet/ops/lsh_attention.h"

namespace linnet::test {

/// i32 hashes below `buckets`, of shape (batch, time, heads, rounds).
inline Tensor random_hashes(const Shape& shape, int64_t buckets, uint64_t seed = 8) {
  Generator generator{seed, 0, 0};
  std::vector<int32_t> values(static_cast<size_t>(shape.numel()));
  for (int32_t& value : values) value = static_cast<int32_t>(generator.below(buckets));
  return Tensor::from(values, shape);
}

/// P_i^r of one head as a table of time x time, from the hashes of its steps.
inline std::vector<bool> lsh_pairs(const std::vector<int32_t>& hashes, const std::vector<bool>& keys,
                                   const LshAttentionOptions& options) {
  const size_t time = hashes.size();
  std::vector<size_t> order(time), place(time);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t s, size_t t) {
    if (keys[s] != keys[t]) return bool(keys[s]);
    if (keys[s] && hashes[s] != hashes[t]) return hashes[s] < hashes[t];
    return s < t;
  });
  for (size_t p = 0; p < time; ++p) place[order[p]] = p;
  std::vector<bool> pairs(time * time);
  for (size_t i = 0; i < time; ++i)
    for (size_t j = 0; j < time; ++j) {
      const size_t chunk = static_cast<size_t>(options.chunk), of_i = place[i] / chunk, of_j = place[j] / chunk;
      pairs[i * time + j] = keys[j] && (of_j == of_i || of_j + 1 == of_i) && (i != j || options.self) &&
                            (!options.causal || j <= i) && (!options.own_bucket || hashes[i] == hashes[j]);
    }
  return pairs;
}

inline Tensor lsh_by_definition(const Tensor& q_any, const Tensor& k_any, const Tensor& v_any,
                                const LshAttentionOptions& options) {
  const Tensor q = q_any.to(Device::cpu).to(Dtype::f64), k = k_any.to(Device::cpu).to(Dtype::f64),
               v = v_any.to(Device::cpu).to(Dtype::f64), all_hashes = options.hashes->to(Device::cpu);
  const size_t batch = size_t(q.size(0)), time = size_t(q.size(1)), heads = size_t(q.size(2)), dim = size_t(q.size(3)),
               width = size_t(v.size(3)), rounds = size_t(options.rounds);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(dim)));
  const auto steps = [&](const auto* mask, const char* kind, size_t b) {
    std::vector<bool> allowed(time, true);
    if (!mask) return allowed;
    const Tensor all = mask->steps("test", kind, q.size(0), q.size(1), q_any.device()).to(Device::cpu);
    for (size_t t = 0; t < time; ++t) allowed[t] = all.template data<uint8_t>()[b * time + t];
    return allowed;
  };
  Tensor out = Tensor::zeros({q.size(0), q.size(1), q.size(2), v.size(3)}, Dtype::f64, Device::cpu);
  for (size_t b = 0; b < batch; ++b)
    for (size_t h = 0; h < heads; ++h) {
      const auto row = [&](const Tensor& x, size_t t, size_t size) {
        return x.data<double>() + ((b * time + t) * heads + h) * size;
      };
      const std::vector<bool> keys = steps(options.keys, "key", b), queries = steps(options.queries, "query", b);
      std::vector<std::vector<bool>> pairs;
      for (size_t r = 0; r < rounds; ++r) {
        std::vector<int32_t> hashes;
        for (size_t t = 0; t < time; ++t)
          hashes.push_back(all_hashes.data<int32_t>()[((b * time + t) * heads + h) * rounds + r]);
        pairs.push_back(lsh_pairs(hashes, keys, options));
      }
      for (size_t i = 0; i < time; ++i) {
        if (!queries[i]) continue;
        double* const o = out.mutable_data<double>() + ((b * time + i) * heads + h) * width;
        const auto add = [&](double weight, size_t j) {
          for (size_t m = 0; m < width; ++m) o[m] += weight * row(v, j, width)[m];
        };
        const auto weights_of = [&](size_t r) {
          std::vector<double> weights(time);
          for (size_t j = 0; j < time; ++j)
            if (pairs[r][i * time + j])
              weights[j] =
                  std::exp(scale * std::inner_product(row(q, i, dim), row(q, i, dim) + dim, row(k, j, dim), 0.0));
          return weights;
        };
        const auto attend = [&](const std::vector<double>& weights, double share) {
          const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
          if (total == 0 && keys[i]) add(share, i);
          for (size_t j = 0; j < time && total > 0; ++j)
            if (weights[j] > 0) add(share * weights[j] / total, j);
        };
        std::vector<double> joint(time);
        for (size_t r = 0; r < rounds; ++r) {
          const std::vector<double> weights = weights_of(r);
          if (options.combine == LshRounds::mean) attend(weights, 1 / static_cast<double>(rounds));
          for (size_t j = 0; j < time; ++j) joint[j] = std::max(joint[j], weights[j]);  // a union: each key once
        }
        if (options.combine == LshRounds::joint) attend(joint, 1);
      }
    }
  return out;
}

/// Every form: both ways to combine rounds, with and without the buckets, the own step, causality.
template <class F>
void for_each_lsh_form(const F& f) {
  for (int form = 0; form < 16; ++form) {
    CAPTURE(form);
    f(LshAttentionOptions{.chunk = 4,
                          .causal = (form & 1) != 0,
                          .self = (form & 2) != 0,
                          .own_bucket = (form & 4) != 0,
                          .combine = form & 8 ? LshRounds::mean : LshRounds::joint});
  }
}

}  // namespace linnet::test
