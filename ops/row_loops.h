// Sums and maxima over a row, for the fused kernels of one level. Private to ops/*_level.cpp.
#pragma once
#include <stdint.h>

namespace linnet::LINNET_LEVEL {
namespace {

constexpr int kBlock = 256;

/// As many T as one register of this level holds.
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kCount = kVectorBytes / sizeof(T);
};

/// All lanes of v put together by f(a, b), in pairs; f takes vectors and numbers.
template <class T, class F>
T across(typename Lanes<T>::Vector v, const F& f) {
  constexpr int kCount = Lanes<T>::kCount;
  if constexpr (kCount == 16) {
    f(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    f(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
  } else if constexpr (kCount == 8) {
    f(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
  }
  T lane[4] = {v[0], v[1]};
  if constexpr (kCount > 2) {
    lane[2] = v[2], lane[3] = v[3];
    f(lane[0], lane[2]), f(lane[1], lane[3]);
  }
  f(lane[0], lane[1]);
  return lane[0];
}

/// The sum of f(i) over begin <= i < end: halves until kBlock numbers are left, then a running sum a lane. The order
/// depends on the length and the level alone.
template <class T, class F>
T row_sum(int64_t begin, int64_t end, const F& f) {
  using V = typename Lanes<T>::Vector;
  constexpr int kCount = Lanes<T>::kCount;
  const int64_t n = end - begin;
  if (n > kBlock) return row_sum<T>(begin, begin + n / 2, f) + row_sum<T>(begin + n / 2, end, f);
  alignas(64) T term[kBlock + 2 * kCount];
  for (int64_t i = 0; i < n; ++i) term[i] = f(begin + i);
  for (int64_t i = 0; i < 2 * kCount; ++i) term[n + i] = T(0);
  V even = {}, odd = {};
  for (int64_t i = 0; i < n; i += 2 * kCount) {
    V next[2];
    __builtin_memcpy(next, term + i, sizeof(next));
    even += next[0], odd += next[1];
  }
  even += odd;
  return across<T>(even, [](auto& a, const auto& b) { a += b; });
}

/// The largest of a row, -infinity for an empty one. NaN is passed over: it comes back through the sum that follows.
template <class T>
T row_max(int64_t n, const T* x) {
  using V = typename Lanes<T>::Vector;
  constexpr int kCount = Lanes<T>::kCount;
  V largest = V{} + static_cast<T>(-__builtin_inf());
  V next = largest;
  const auto larger = [](auto& a, const auto& b) { a = b > a ? b : a; };
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) {
    __builtin_memcpy(&next, x + i, sizeof(V));
    larger(largest, next);
  }
  for (int j = 0; i + j < n; ++j) next[j] = x[i + j];
  larger(largest, next);
  return across<T>(largest, larger);
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
