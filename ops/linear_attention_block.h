// The primitive of linear attention, over rows r in order:
//
//     X += a_r b_r^T,   o_r = X^T c_r
//
// kRows rows by two vectors of columns stay in registers while X streams by once. Included once per level; everything
// lies in the level's own namespace.
// Private to ops/.
#pragma once
#include "linnet/core/vectors.h"

namespace linnet::LINNET_LEVEL {
namespace {

constexpr int kRows = kBytes == 64 ? 4 : 2;
constexpr int64_t kChunk = 32;

/// n rounded up to whole vectors.
template <class T>
int64_t padded(int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
}

/// The primitive for kRows rows and kVectors vectors of columns; x is depth x (kVectors vectors), contiguous. Vector j
/// of o_r goes to write(r, j, o). Not inlined: its loop wants all registers.
template <class T, int kVectors, bool kUpdate, bool kRead, class Write>
[[gnu::noinline]] void block(int64_t depth, const T* a, int64_t la, const T* b, int64_t lb, const T* c, int64_t lc,
                             T* x, Write write) {
  Vector<T> bv[kRows][kVectors], ov[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      if constexpr (kUpdate) bv[r][j] = at(b + r * lb + j * kLanes<T>);
      ov[r][j] = Vector<T>{};
    }
  }
  for (int64_t d = 0; d < depth; ++d, x += kVectors * kLanes<T>) {
    Vector<T> s[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) s[j] = at(x + j * kLanes<T>);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        if constexpr (kUpdate) s[j] += a[r * la + d] * bv[r][j];
        if constexpr (kRead) ov[r][j] += c[r * lc + d] * s[j];
      }
    }
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      if constexpr (kUpdate) at(x + j * kLanes<T>) = s[j];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
      if constexpr (kRead) write(r, j, ov[r][j]);
    }
  }
}

/// For a primitive that only updates.
struct Nowhere {
  template <class V>
  void operator()(int64_t, int64_t, V) const {}
};

/// Rows of a chunk: `data` rows of `ld` numbers.
template <class T>
struct Rows {
  T* data;
  int64_t ld;
  T* operator[](int64_t r) const { return data + r * ld; }
};

/// X: depth x columns, stored as blocks of two vectors of columns (the last may be one), each depth x its width.
template <class T>
struct State {
  T* x;
  int64_t depth, columns;  // columns: whole vectors

  T& operator()(int64_t d, int64_t column) const {
    constexpr int64_t kWide = 2 * kLanes<T>;
    const int64_t first = column / kWide * kWide;
    const int64_t width = columns - first < kWide ? columns - first : kWide;
    return x[first * depth + d * width + column - first];
  }
  int64_t size() const { return depth * columns; }
  void clear() const {
    for (int64_t i = 0; i < size(); ++i) x[i] = 0;
  }
};

/// The primitive for the first `rows` rows of a chunk, whole groups of kRows. What it reads goes to write(r, column, a
/// vector of o_r from that column on); meanwhile `ahead` asks, part by part, for the rows of the next chunk.
template <class T, bool kUpdate, bool kRead, class Ahead, class Write>
void primitive(int64_t rows, const Rows<T>& a, const Rows<T>& b, const Rows<T>& c, const State<T>& state,
               const Ahead& ahead, Write write) {
  constexpr int64_t kOne = kLanes<T>;
  const int64_t calls = (state.columns + 2 * kOne - 1) / (2 * kOne) * (rows / kRows);
  T* x = state.x;
  int64_t call = 0;
  for (int64_t column = 0; column < state.columns;) {
    const bool two = state.columns - column >= 2 * kOne;
    for (int64_t r = 0; r < rows; r += kRows, ++call) {
      ahead.part(call, calls);
      const auto write_vector = [&](int i, int j, Plain<T> o) __attribute__((always_inline)) {
        write(r + i, column + j * kOne, o);
      };
      if (two) {
        block<T, 2, kUpdate, kRead>(state.depth, a[r], a.ld, b[r] + column, b.ld, c[r], c.ld, x, write_vector);
      } else {
        block<T, 1, kUpdate, kRead>(state.depth, a[r], a.ld, b[r] + column, b.ld, c[r], c.ld, x, write_vector);
      }
    }
    column += two ? 2 * kOne : kOne;
    x += (two ? 2 * kOne : kOne) * state.depth;
  }
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
