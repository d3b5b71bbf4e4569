// Rows of one head, copied side by side in an order of choice, so that a matrix product can read them. Private to ops/.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace linnet {

template <class T>
struct PackedRows {
  int64_t width = 0;
  std::vector<T> values;

  explicit PackedRows(int64_t w) : width(w) {}
  T* row(int64_t r) { return values.data() + r * width; }

  void clear(int64_t rows) { values.assign(static_cast<size_t>(rows * width), T(0)); }
  /// Row r is step steps[r] of source, times `scale`.
  void gather(const T* source, int64_t stride, std::span<const int32_t> steps, T scale = 1) {
    values.resize(steps.size() * static_cast<size_t>(width));
    for (size_t r = 0; r < steps.size(); ++r) {
      const T* from = source + steps[r] * stride;
      T* to = row(static_cast<int64_t>(r));
      for (int64_t d = 0; d < width; ++d) to[d] = scale * from[d];
    }
  }
  /// Adds row r to step steps[r] of target.
  void add_to(T* target, int64_t stride, std::span<const int32_t> steps) {
    for (size_t r = 0; r < steps.size(); ++r) {
      const T* from = row(static_cast<int64_t>(r));
      T* to = target + steps[r] * stride;
      for (int64_t d = 0; d < width; ++d) to[d] += from[d];
    }
  }
};

template <class T>
T dot(int64_t n, const T* a, const T* b) {
  T sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += a[d] * b[d];
  return sum;
}

/// y += a x
template <class T>
void add_scaled(int64_t n, T a, const T* x, T* y) {
  for (int64_t d = 0; d < n; ++d) y[d] += a * x[d];
}

}  // namespace linnet
