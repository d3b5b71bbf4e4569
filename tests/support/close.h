// deviation: how far two tensors lie apart, as every "agrees to 1e-5" in the tests means it.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet::test {

/// max |a - b| / max(1, max |b|); infinity where the shapes differ or a number is not finite.
inline double deviation(const Tensor& a, const Tensor& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!a.defined() || !b.defined() || a.shape() != b.shape()) return kInfinity;
  const std::vector<double> x = a.to(Dtype::f64).to_vector<double>(), y = b.to(Dtype::f64).to_vector<double>();
  double largest = 0, size = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return kInfinity;
    largest = std::max(largest, std::abs(x[i] - y[i]));
    size = std::max(size, std::abs(y[i]));
  }
  return largest / size;
}

/// Whether the same numbers stand in both, bit for bit.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor here = a.to(Device::cpu), there = b.to(Device::cpu);
  const char *x = static_cast<const char*>(here.raw()), *y = static_cast<const char*>(there.raw());
  return std::equal(x, x + a.bytes(), y);
}

}  // namespace linnet::test
