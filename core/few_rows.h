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

  /// Row j of B; one that is there where j lies behind the last.
  const T* b_row(int64_t j) const { return b + (j < n ? j : n - 1) * ldb; }

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

// ---- up to kDotRows rows: dot products. A row of B is read from its beginning to its end, one after the other, which
// is what a processor reads ahead best.

constexpr int64_t kDotRows = 8;

/// Rows i .. i+kRows-1 of A by one row of B.
template <class T, int kRows>
inline __attribute__((always_inline)) void dots(const FewRows<T>& p, const T* a, const T* b, Plain<T>* out) {
  constexpr int kChains = kRows < 4 ? 4 / kRows : 1;  // an addition has a latency of four cycles
  Plain<T> sum[kRows][kChains] = {};
  int64_t l = 0;
  for (; l + kChains * kLanes<T> <= p.k; l += kChains * kLanes<T>) {
#pragma GCC unroll 4
    for (int u = 0; u < kChains; ++u) {
      const Plain<T> x = at(b + l + u * kLanes<T>);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[i][u] += at(a + i * p.lda + l + u * kLanes<T>) * x;
    }
  }
  for (; l < p.k; l += kLanes<T>) {
    const Plain<T> x = load(b + l, p.k - l);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum[i][0] += load(a + i * p.lda + l, p.k - l) * x;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int u = 1; u < kChains; ++u) sum[i][0] += sum[i][u];
    out[i] = sum[i][0];
  }
}

/// Rows i .. i+kRows-1 of A by as many rows of B, from j on, as their sums fill a vector.
template <class T, int kRows>
void dot_tile(const FewRows<T>& p, int64_t i, int64_t j) {
  constexpr int kColumns = kLanes<T> / kRows;
  Plain<T> product[kLanes<T>];
#pragma GCC unroll 16  // a branch of its own for the end of each row: one for all is guessed wrong often
  for (int x = 0; x < kColumns; ++x) dots<T, kRows>(p, p.a + i * p.lda, p.b_row(j + x), product + x * kRows);
  const Plain<T> all = sums<T, kLanes<T>>(product);
  const int64_t count = p.n - j < kColumns ? p.n - j : kColumns;
  if constexpr (kRows == 1) return p.write(i, j, count, all, true);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    Plain<T> row = {};
#pragma GCC unroll 16
    for (int x = 0; x < kColumns; ++x) row[x] = all[x * kRows + r];
    p.write(i + r, j, count, row, true);
  }
}

template <class T, int kRows>
int64_t dot_rows(const FewRows<T>& p, int64_t i, int64_t j, int64_t columns) {
  for (; i + kRows <= p.m; i += kRows)
    for (int64_t x = j; x < p.n && x < j + columns; x += kLanes<T> / kRows) dot_tile<T, kRows>(p, i, x);
  if constexpr (kRows > 1) return dot_rows<T, kRows / 2>(p, i, j, columns);
  return i;
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
  if (p.m > kDotRows) return panels<T>(p, 0);
  constexpr int64_t kColumns = 64;  // rows of B that stay in the first cache while other rows of A are there
  for (int64_t j = 0; j < p.n; j += kColumns) dot_rows < T, kLanes<T><8 ? kLanes<T> : 8>(p, 0, j, kColumns);
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
