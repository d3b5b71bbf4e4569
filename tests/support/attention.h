// Attention by its definition, O(N^2) and in double: what both attentions are held against.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet {

/// The masks of one case; undefined tensors let everything through.
struct ReferenceMasks {
  bool causal = false;
  Tensor keys, queries;  // u8 (batch, time)
  Tensor pairs;          // u8 (queries, keys)

  bool query(int64_t b, int64_t i) const {
    return !queries.defined() || queries.data<uint8_t>()[b * queries.size(1) + i];
  }
  bool pair(int64_t b, int64_t i, int64_t j) const {
    if (causal && j > i) return false;
    if (keys.defined() && !keys.data<uint8_t>()[b * keys.size(1) + j]) return false;
    return !pairs.defined() || pairs.data<uint8_t>()[i * pairs.size(1) + j];
  }
  ReferenceMasks on_cpu() const {
    const auto moved = [](const Tensor& x) { return x.defined() ? x.to(Device::cpu) : x; };
    return {causal, moved(keys), moved(queries), moved(pairs)};
  }
};

/// o_i = sum_j w_ij v_j, where weights(row of q.k-dependent similarities) are given by `similarity` and divided by
/// their sum (plus eps) where `normalise`. Returns f64 (batch, queries, heads, M),
/// on the CPU.
template <class Similarity>
Tensor quadratic_attention(const Tensor& q_any, const Tensor& k_any, const Tensor& v_any,
                           const ReferenceMasks& masks_any, Similarity similarity, bool normalise = true,
                           double eps = 0) {
  const Tensor q = q_any.to(Device::cpu).to(Dtype::f64), k = k_any.to(Device::cpu).to(Dtype::f64),
               v = v_any.to(Device::cpu).to(Dtype::f64);
  const ReferenceMasks masks = masks_any.on_cpu();
  const int64_t batch = q.size(0), queries = q.size(1), keys = k.size(1), heads = q.size(2), dim = q.size(3),
                width = v.size(3);
  Tensor out = Tensor::zeros({batch, queries, heads, width}, Dtype::f64, Device::cpu);
  double* o = out.mutable_data<double>();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < queries; ++i)
      for (int64_t h = 0; h < heads; ++h) {
        double* row = o + ((b * queries + i) * heads + h) * width;
        double total = 0;
        if (!masks.query(b, i)) continue;
        for (int64_t j = 0; j < keys; ++j) {
          if (!masks.pair(b, i, j)) continue;
          const double w = similarity(q.data<double>() + ((b * queries + i) * heads + h) * dim,
                                      k.data<double>() + ((b * keys + j) * heads + h) * dim, dim);
          total += w;
          for (int64_t m = 0; m < width; ++m) row[m] += w * v.data<double>()[((b * keys + j) * heads + h) * width + m];
        }
        if (normalise)
          for (int64_t m = 0; m < width; ++m) row[m] = total + eps == 0 ? 0 : row[m] / (total + eps);
      }
  return out;
}

/// The largest |a - b|, divided by max(1, largest |b|); NaN anywhere gives infinity. Shapes must agree.
inline double deviation(const Tensor& a_any, const Tensor& b_any) {
  REQUIRE(a_any.shape() == b_any.shape());
  const auto a = a_any.to(Dtype::f64).to_vector<double>(), b = b_any.to(Dtype::f64).to_vector<double>();
  double worst = 0, scale = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const double gap = std::abs(a[i] - b[i]);
    if (!(gap <= worst)) worst = std::isnan(gap) ? std::numeric_limits<double>::infinity() : gap;
    scale = std::max(scale, std::abs(b[i]));
  }
  return worst / scale;
}

inline bool bit_equal(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  const Tensor here = a.to(Device::cpu), there = b.to(Device::cpu);
  const char *x = static_cast<const char*>(here.raw()), *y = static_cast<const char*>(there.raw());
  return std::equal(x, x + a.bytes(), y);
}

/// The message of the Error that f throws.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace linnet
