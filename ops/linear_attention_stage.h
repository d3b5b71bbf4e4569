// Staging for linear attention's primitive: rows of a head, feature map applied and padded with zeros, as a chunk in
// scratch memory. Included once per level; everything lies in the level's own namespace.
// Private to ops/.
#pragma once
#include "linnet/core/math.h"
#include "linnet/ops/linear_attention_block.h"
#include "linnet/ops/linear_attention_kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
T total(const Vector<T>& v) {
  T sum = 0;
  for (int l = 0; l < kLanes<T>; ++l) sum += v[l];
  return sum;
}

template <class T>
T dot(int64_t n, const T* x, const T* y) {
  Vector<T> wide = {};
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) wide += at(x + i) * at(y + i);
  T sum = total<T>(wide);
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

template <class T>
void clear(int64_t begin, int64_t end, T* x) {
  for (int64_t i = begin; i < end; ++i) x[i] = 0;
}

template <class T>
void features(FeatureMap map, int64_t n, const T* __restrict x, T* __restrict y) {
  if (map == FeatureMap::elu1) {
    for (int64_t i = 0; i < n; ++i) {
      const T small = exp(x[i]);
      y[i] = x[i] >= 0 ? x[i] + 1 : small;
    }
  } else if (map == FeatureMap::relu) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? T(0) : x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i];
  }
}

/// y = factor x phi', the slope taken from the feature: min(phi, 1) for elu + 1.
template <class T>
void times_slope(FeatureMap map, int64_t n, const T* __restrict x, const T* __restrict phi, T factor, T* __restrict y) {
  if (map == FeatureMap::elu1) {
    for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i] * (phi[i] < 1 ? phi[i] : T(1));
  } else if (map == FeatureMap::relu) {
    for (int64_t i = 0; i < n; ++i) y[i] = phi[i] > 0 ? factor * x[i] : T(0);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
  }
}

/// Rows first, first + step, ... of a head, n of them, as a chunk takes them: step is 1 or -1.
struct Range {
  int64_t first, step, n;
  int64_t operator()(int64_t r) const { return first + r * step; }
  int64_t groups() const { return (n + kRows - 1) / kRows * kRows; }
};

/// Stages phi(x); rows that `mask` leaves out, and those behind the last, are zeros.
template <class T>
void stage_features(const Range& range, FeatureMap map, int64_t dim, const T* x, int64_t row, const uint8_t* mask,
                    const Rows<T>& out) {
  for (int64_t r = 0; r < range.groups(); ++r) {
    const bool counts = r < range.n && (!mask || mask[range(r)]);
    if (counts) features(map, dim, x + range(r) * row, out[r]);
    clear(counts ? dim : 0, out.ld, out[r]);
  }
}

/// Stages x, followed by `one`.
template <class T>
void stage_values(const Range& range, int64_t dim, const T* x, int64_t row, const uint8_t* mask, T one,
                  const Rows<T>& out) {
  for (int64_t r = 0; r < range.groups(); ++r) {
    T* to = out[r];
    const bool counts = r < range.n && (!mask || mask[range(r)]);
    if (counts) {
      const T* from = x + range(r) * row;
      for (int64_t m = 0; m < dim; ++m) to[m] = from[m];
      if (dim < out.ld) to[dim] = one;
    }
    clear(counts ? dim + 1 : 0, out.ld, to);
  }
}

/// Hands out parts of the scratch memory.
template <class T>
struct Arena {
  T* base;  // nullptr: only counts
  int64_t used = 0;
  T* take(int64_t n) {
    T* begin = base ? base + used : nullptr;
    used += (n + 15) / 16 * 16;
    return begin;
  }
  Rows<T> rows(int64_t width) { return {take(kChunk * width), width}; }
  State<T> state(int64_t depth, int64_t columns) { return {take(depth * columns), depth, columns}; }
};

}  // namespace
}  // namespace linnet::LINNET_LEVEL
