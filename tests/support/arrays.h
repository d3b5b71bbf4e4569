// Small arrays for the tests of ops: inputs that keep clear of kinks, shapes worth trying, every level, plain loops.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "linnet/core/dispatch.h"
#include "linnet/core/error.h"
#include "linnet/core/tensor.h"

namespace linnet::test {

/// Values in steps of 0.04 between -2 and 2, in no order, moved by `offset`: no kink at a multiple of 0.04 comes nearer
/// than offset (below 0.02), and grids with different offsets have no equal elements.
inline Tensor grid(const Shape& shape, double offset = 0.013, Dtype dtype = Dtype::f64) {
  std::vector<double> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<double>(i * 37 % 101) - 50) * 0.04 + offset;
  return Tensor::from(values, shape).to(dtype);
}

/// The same, but positive: between 0.3 and 2.3.
inline Tensor positive_grid(const Shape& shape, double offset = 0.013, Dtype dtype = Dtype::f64) {
  std::vector<double> values = grid(shape, offset).to_vector<double>();
  for (double& value : values) value = std::abs(value) + 0.3;
  return Tensor::from(values, shape).to(dtype);
}

/// A scalar, nothing at all, one, odd, and large and ragged.
inline std::vector<Shape> shapes_to_try() { return {{}, {0}, {3, 0, 2}, {1}, {7}, {3, 5}, {37, 129}}; }

/// Whether the tests run on a GPU, or on the emulated one.
inline bool on_cuda() { return default_device() == Device::cuda; }

/// Calls f(name of the level) with every level that this machine has in force; once on a GPU, where levels are none.
template <class F>
void for_each_level(const F& f) {
  if (on_cuda()) return f("cuda");
  struct Restore {
    ~Restore() { unforce_level(); }
  } restore;
  for (Level each : {Level::plain, Level::portable, Level::avx2, Level::avx512}) {
    if (each > best_level()) continue;
    force_level(each);
    f(name(each));
  }
}

/// |a - b| in units of the last place of b in T; 0 for equal numbers, two NaN, or the same infinity.
template <class T>
double distance_in_ulps(T a, long double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  const T rounded = static_cast<T>(b);
  if (a == rounded) return 0;
  if (!std::isfinite(a) || !std::isfinite(rounded)) return std::numeric_limits<double>::infinity();
  const T next = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity());
  const T unit = std::isfinite(next) ? next - std::abs(rounded) : std::abs(rounded) * std::numeric_limits<T>::epsilon();
  return static_cast<double>(std::abs(static_cast<long double>(a) - b) / unit);
}

/// The message of the Error that f throws; a failed check where it throws none.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no error was thrown)";
}

/// Index into a tensor of shape `small`, broadcast to `large`, of the element that lies at position `at` of the large
/// one.
inline int64_t broadcast_index(int64_t at, const Shape& large, const Shape& small) {
  int64_t index = 0, step = 1;
  for (int i = 1; i <= large.rank(); ++i) {
    const int64_t place = at % large[large.rank() - i];
    at /= large[large.rank() - i];
    if (i > small.rank()) continue;
    const int64_t size = small[small.rank() - i];
    if (size != 1) index += place * step;
    step *= size;
  }
  return index;
}

}  // namespace linnet::test
