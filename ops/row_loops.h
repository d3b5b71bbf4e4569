// Sums and maxima over a row, for the fused kernels of one level. Private to ops/*_level.cpp.
#pragma once
#include <stdint.h>

namespace linnet::LINNET_LEVEL {
namespace {

constexpr int kRowLanes = 32;  // running results of a row, so that the loop over it is vectorised

/// The sum of f(i) over begin <= i < end: halves until 1,024 numbers are left, then running sums that are added in
/// pairs. The order depends on the length alone.
template <class T, class F>
T row_sum(int64_t begin, int64_t end, const F& f) {
  if (end - begin > 1024) {
    int64_t middle = begin + (end - begin) / 2;
    return row_sum<T>(begin, middle, f) + row_sum<T>(middle, end, f);
  }
  T lane[kRowLanes] = {};
  int64_t i = begin;
  for (; i + kRowLanes <= end; i += kRowLanes)
    for (int j = 0; j < kRowLanes; ++j) lane[j] += f(i + j);
  for (int j = 0; i + j < end; ++j) lane[j] += f(i + j);
  for (int width = kRowLanes / 2; width; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

/// The largest of a row, -infinity for an empty one. NaN is passed over: it comes back through the sum that follows.
template <class T>
T row_max(int64_t n, const T* x) {
  T lane[kRowLanes];
  for (T& m : lane) m = static_cast<T>(-__builtin_inf());
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes)
    for (int j = 0; j < kRowLanes; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (int j = 0; i + j < n; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  for (int width = kRowLanes / 2; width; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] = lane[j + width] > lane[j] ? lane[j + width] : lane[j];
  return lane[0];
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
