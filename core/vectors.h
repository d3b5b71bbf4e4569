// Vectors of a level: as wide as its registers, with what a compiler does not find by itself: sums across lanes and
// transposes. Included once per level; everything lies in the level's own namespace.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <utility>  // index_sequence: a type, no code

namespace linnet::LINNET_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif

/// A vector in memory, wherever it lies.
template <class T>
using Vector __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias)) = T;
/// A vector as a value.
template <class T>
using Plain __attribute__((vector_size(kBytes))) = T;
template <class T>
constexpr int kLanes = kBytes / sizeof(T);
template <class T>
using Lanes = std::make_index_sequence<kLanes<T>>;

template <class T>
Vector<T>& at(T* p) {
  return *reinterpret_cast<Vector<T>*>(p);
}
template <class T>
const Vector<T>& at(const T* p) {
  return *reinterpret_cast<const Vector<T>*>(p);
}

/// The first n numbers from x, zeros behind them.
template <class T>
inline __attribute__((always_inline)) Plain<T> load(const T* x, int64_t n) {
  if (n >= kLanes<T>) return at(x);
  Plain<T> v = {};
  for (int64_t l = 0; l < n; ++l) v[l] = x[l];
  return v;
}

/// The first n numbers of v into x.
template <class T>
inline __attribute__((always_inline)) void store(T* x, int64_t n, Plain<T> v) {
  if (n >= kLanes<T>) {
    at(x) = v;
  } else {
    for (int64_t l = 0; l < n; ++l) x[l] = v[l];
  }
}

/// f(i, count) for i = 0, kLanes, ...: count is kLanes, a constant, but for the rest at the end of n.
template <class T, class F>
inline __attribute__((always_inline)) void each(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) f(i, kLanes<T>);
  if (i < n) f(i, n - i);
}

/// Lane l: the sum of lanes l and l ^ kHalf, of a where l & kHalf is 0, else of b.
template <int kHalf, class V, size_t... l>
V folded(V a, V b, std::index_sequence<l...>) {
  constexpr int n = sizeof...(l);
  return __builtin_shufflevector(a, b, (l & kHalf ? n + l : l)...) +
         __builtin_shufflevector(a, b, (l & kHalf ? n + (l ^ kHalf) : l ^ kHalf)...);
}

/// The sum of the lanes of v[i] in lane i, for kCount vectors, a power of two and at most kLanes. In the order of a
/// binary tree, the same for each i.
template <class T, int kCount, int kHalf = 1>
inline __attribute__((always_inline)) Plain<T> sums(const Plain<T>* v) {
  if constexpr (kHalf == kLanes<T>) {
    return v[0];
  } else {
    constexpr int kLeft = kCount > 1 ? kCount / 2 : 1;
    Plain<T> next[kLeft];
#pragma GCC unroll 8
    for (int i = 0; i < kLeft; ++i) {
      const Plain<T>&a = v[kCount > 1 ? 2 * i : i], &b = v[kCount > 1 ? 2 * i + 1 : i];
      next[i] = folded<kHalf>(a, b, Lanes<T>());
    }
    return sums<T, kLeft, 2 * kHalf>(next);
  }
}

/// Exchanges bit kHalf of the index of a vector with that of the lane, for a whose bit is 0 and b whose bit is 1.
template <int kHalf, class V, size_t... l>
void exchange(V& a, V& b, std::index_sequence<l...>) {
  constexpr int n = sizeof...(l);
  const V low = __builtin_shufflevector(a, b, (l & kHalf ? n + (l ^ kHalf) : l)...);
  const V high = __builtin_shufflevector(a, b, (l & kHalf ? n + l : l ^ kHalf)...);
  a = low, b = high;
}

/// kLanes vectors as a square matrix: transposed in place.
template <class T, int kHalf = 1>
inline __attribute__((always_inline)) void transpose(Plain<T>* v) {
  if constexpr (kHalf < kLanes<T>) {
#pragma GCC unroll 16
    for (int i = 0; i < kLanes<T>; ++i) {
      if (!(i & kHalf)) exchange<kHalf>(v[i], v[i | kHalf], Lanes<T>());
    }
    transpose<T, 2 * kHalf>(v);
  }
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
