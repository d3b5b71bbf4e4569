// C = alpha A B^T + beta C where A has few rows: a few tokens times a weight (out, in). B is read once, as it lies; a
// product of matrices as OpenBLAS makes it copies all of B into an order of its own first, which pays for many rows.
// Included once per level; everything lies in the level's own namespace.
#pragma once
#include "linnet/core/vectors.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
struct FewRows {
  int64_t m, n, k;
  T alpha;
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;

  /// Row i of A or j of B; one that is there where it lies behind the last.
  const T* a_row(int64_t i) const { return a + (i < m ? i : m - 1) * lda; }
  const T* b_row(int64_t j) const { return b + (j < n ? j : n - 1) * ldb; }

  void write(int64_t i, int64_t j, T product) const {
    T& to = c[i * ldc + j];
    to = alpha * product + (beta == 0 ? T(0) : beta * to);
  }

  void write(int64_t i, int64_t j, int64_t count, Plain<T> product, bool first) const {
    T* to = c + i * ldc + j;
    product *= alpha;
    if (!first) {
      product += load(to, count);
    } else if (beta != 0) {
      product += beta * load(to, count);
    }
    store<T>(to, count, product);
  }
};

// ---- up to kDotRows rows: dot products. B is read as a few streams, each row after row from one end to the other and
// far from the others: that is what a processor reads ahead best, several rows side by side what it reads ahead worst.

constexpr int64_t kDotRows = 8;

/// Up to kRows rows of A times all rows of B.
template <class T, int kRows>
void dot_rows(const FewRows<T>& p) {
  constexpr int kSums = kBytes == 64 ? 16 : 8;  // half of the registers
  constexpr int kStreams = kSums / kRows < 4 ? kSums / kRows : 4, kWide = kRows * kStreams;
  constexpr int kDeep = kWide < kLanes<T> ? kLanes<T> / kWide : 1, kCount = kWide * kDeep;  // sums: whole vectors
  const int64_t stream = (p.n + kStreams * kDeep - 1) / (kStreams * kDeep) * kDeep;         // rows of B
  for (int64_t j = 0; j < stream; j += kDeep) {
    Plain<T> products[kCount];
    T values[kCount];
#pragma GCC unroll 4  // a branch of its own for the end of each row: one for all is guessed wrong often
    for (int x = 0; x < kDeep; ++x) {
      const T *a[kRows], *b[kStreams];
      Plain<T> sum[kStreams][kRows] = {};
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) a[r] = p.a_row(r);
#pragma GCC unroll 4
      for (int q = 0; q < kStreams; ++q) b[q] = p.b_row(q * stream + j + x);
      const auto add = [&](int64_t l, int64_t count) __attribute__((always_inline)) {
        Plain<T> in[kRows];
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) in[r] = load(a[r] + l, count);
#pragma GCC unroll 4
        for (int q = 0; q < kStreams; ++q) {
          const Plain<T> weight = load(b[q] + l, count);
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) sum[q][r] += in[r] * weight;
        }
      };
      int64_t l = 0;
      for (; l + kLanes<T> <= p.k; l += kLanes<T>) add(l, kLanes<T>);
      if (l < p.k) add(l, p.k - l);
#pragma GCC unroll 4
      for (int q = 0; q < kStreams; ++q) {
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) products[(x * kStreams + q) * kRows + r] = sum[q][r];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; v += kLanes<T>) at(values + v) = sums<T, kLanes<T>>(products + v);
    for (int v = 0; v < kCount; ++v) {
      const int64_t row = v % kRows, column = v / kRows % kStreams * stream + j + v / kRows / kStreams;
      if (row < p.m && column < p.n) p.write(row, column, values[v]);
    }
  }
}

// ---- more rows: a panel of A is transposed, so that a number of B times a vector of it belongs to as many rows.

#if defined(__AVX512F__)
constexpr int kPanel = 4, kGroup = 6;  // vectors of the panel by rows of B: 24 of 32 registers
#else
constexpr int kPanel = 2, kGroup = 6;  // 12 of 16
#endif
constexpr int64_t kDepth = 256;
template <class T>
constexpr int64_t kBlock = 3 * kLanes<T>;  // rows of B between two transposes: whole groups, and whole squares

/// panel (depth x kVectors vectors) = rows i .. of A, columns l .. of it, transposed; zeros behind the last row.
template <class T, int kVectors>
void fill_panel(const FewRows<T>& p, int64_t i, int64_t l, int64_t depth, T* panel) {
  for (int v = 0; v < kVectors; ++v) {
    for (int64_t d = 0; d < depth; d += kLanes<T>) {
      Plain<T> square[kLanes<T>];
#pragma GCC unroll 16
      for (int r = 0; r < kLanes<T>; ++r) {
        const int64_t row = i + v * kLanes<T> + r;
        square[r] = row < p.m ? load(p.a + row * p.lda + l + d, depth - d) : Plain<T>{};
      }
      transpose<T>(square);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes<T>; ++r) {
        if (d + r < depth) at(panel + ((d + r) * kVectors + v) * kLanes<T>) = square[r];
      }
    }
  }
}

/// out (kGroup x kVectors vectors) = kGroup rows of B, columns l .. l+depth-1, times the panel.
template <class T, int kVectors>
void group(const FewRows<T>& p, int64_t j, int64_t l, int64_t depth, const T* panel, T* out) {
  Plain<T> sum[kGroup][kVectors];
  const T *b[kGroup], *next[kGroup];
#pragma GCC unroll 6
  for (int r = 0; r < kGroup; ++r) {
    b[r] = p.b_row(j + r) + l;
    next[r] = p.b_row(j + kGroup + r) + l;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[r][v] = Plain<T>{};
  }
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t line = 0; line < depth; line += kLine) {
#pragma GCC unroll 6
    for (int r = 0; r < kGroup; ++r) __builtin_prefetch(next[r] + line);
    const int64_t end = line + kLine < depth ? line + kLine : depth;
    for (int64_t d = line; d < end; ++d, panel += kVectors * kLanes<T>) {
#pragma GCC unroll 6
      for (int r = 0; r < kGroup; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sum[r][v] += b[r][d] * at(panel + v * kLanes<T>);
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kGroup; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) at(out + (r * kVectors + v) * kLanes<T>) = sum[r][v];
  }
}

/// Rows i .. of A, as many as kVectors vectors have lanes.
template <class T, int kVectors>
void panel_rows(const FewRows<T>& p, int64_t i) {
  alignas(64) T panel[kDepth * kVectors * kLanes<T>], block[kBlock<T> * kVectors * kLanes<T>];
  constexpr int64_t kWidth = kVectors * kLanes<T>;
  for (int64_t l = 0; l < p.k; l += kDepth) {
    const int64_t depth = p.k - l < kDepth ? p.k - l : kDepth;
    fill_panel<T, kVectors>(p, i, l, depth, panel);
    for (int64_t j = 0; j < p.n; j += kBlock<T>) {
      for (int64_t x = 0; x < kBlock<T> && j + x < p.n; x += kGroup)
        group<T, kVectors>(p, j + x, l, depth, panel, block + x * kWidth);
      for (int64_t x = 0; x < kBlock<T> && j + x < p.n; x += kLanes<T>) {
        for (int64_t y = 0; y < kWidth && i + y < p.m; y += kLanes<T>) {
          Plain<T> square[kLanes<T>];
#pragma GCC unroll 16
          for (int r = 0; r < kLanes<T>; ++r) square[r] = at(block + (x + r) * kWidth + y);
          transpose<T>(square);
#pragma GCC unroll 16
          for (int r = 0; r < kLanes<T>; ++r) {
            if (i + y + r < p.m) p.write(i + y + r, j + x, p.n - j - x, square[r], l == 0);
          }
        }
      }
    }
  }
}

template <class T, int kVectors = kPanel>
void panels(const FewRows<T>& p, int64_t i) {
  for (; p.m - i > (kVectors - 1) * kLanes<T>; i += kVectors * kLanes<T>) panel_rows<T, kVectors>(p, i);
  if constexpr (kVectors > 1) panels<T, kVectors - 1>(p, i);
}

template <class T>
void few_rows(const FewRows<T>& p) {
  if (p.m == 0 || p.n == 0) return;
  if (p.m > kDotRows) return panels<T>(p, 0);
  if (p.m > 4) return dot_rows<T, 8>(p);
  if (p.m > 2) return dot_rows<T, 4>(p);
  if (p.m > 1) return dot_rows<T, 2>(p);
  dot_rows<T, 1>(p);
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
