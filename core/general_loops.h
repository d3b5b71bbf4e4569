// The loops of the general kernels (core/kernels.h), the same source for every level; included once per level.
#pragma once
#include "linnet/core/functors.h"
#include "linnet/core/kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T, template <class> class F>
void unary(int64_t n, const T* __restrict x, T* __restrict y, T p, T q) {
  F<T> op{{p, q}};
  for (int64_t i = 0; i < n; ++i) y[i] = op.f(x[i]);
}

template <class T, template <class> class F, Needs needs>
void unary_slope(int64_t n, const T* __restrict x, const T* __restrict y, const T* __restrict dy, T* __restrict dx, T p,
                 T q) {
  F<T> op{{p, q}};
  for (int64_t i = 0; i < n; ++i) {
    T xi = needs == Needs::input ? x[i] : T(0);
    T yi = needs == Needs::output ? y[i] : T(0);
    dx[i] = dy[i] * op.df(xi, yi);
  }
}

/// Calls row(output offset, input offsets) for every innermost row of the loop, in order.
template <class Row>
void for_rows(const BroadcastLoop& loop, const Row& row) {
  int last = loop.rank - 1;
  int64_t at[8] = {}, in[3] = {}, out = 0;
  for (int d = 0; d < loop.rank; ++d)
    if (loop.size[d] == 0) return;
  while (true) {
    row(out, in);
    if (last <= 0) return;
    out += loop.size[last];
    int d = last - 1;
    for (;; --d) {
      for (int i = 0; i < 3; ++i) in[i] += loop.stride[i][d];
      if (++at[d] < loop.size[d]) break;
      for (int i = 0; i < 3; ++i) in[i] -= loop.stride[i][d] * loop.size[d];
      at[d] = 0;
      if (d == 0) return;
    }
  }
}

/// y[i] = f(a[i sa], b[i sb]) with the common strides taken out, so that each becomes a simple loop.
template <class T, class Out, class F>
void binary_row(int64_t n, const T* a, int64_t sa, const T* b, int64_t sb, Out* __restrict y, F f) {
  if (sa == 1 && sb == 1) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i], i);
  } else if (sa == 1 && sb == 0) {
    T b0 = b[0];
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i], b0, i);
  } else if (sa == 0 && sb == 1) {
    T a0 = a[0];
    for (int64_t i = 0; i < n; ++i) y[i] = f(a0, b[i], i);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = f(a[i * sa], b[i * sb], i);
  }
}

template <class T, class Out, class F>
void binary_loop(const BroadcastLoop& loop, const T* a, const T* b, Out* y, F f) {
  int last = loop.rank - 1;
  int64_t n = loop.rank ? loop.size[last] : 1;
  int64_t sa = loop.rank ? loop.stride[0][last] : 0, sb = loop.rank ? loop.stride[1][last] : 0;
  for_rows(loop, [&](int64_t out, const int64_t* in) { binary_row(n, a + in[0], sa, b + in[1], sb, y + out, f(out)); });
}

template <class T, template <class> class F>
void binary(const BroadcastLoop& loop, const T* a, const T* b, T* y) {
  binary_loop(loop, a, b, y, [](int64_t) { return [](T ai, T bi, int64_t) { return F<T>::f(ai, bi); }; });
}
template <class T, template <class> class F>
void binary_slope_a(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* da) {
  binary_loop(loop, a, b, da, [dy](int64_t out) {
    return [row = dy + out](T ai, T bi, int64_t i) { return row[i] * F<T>::da(ai, bi); };
  });
}
template <class T, template <class> class F>
void binary_slope_b(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* db) {
  binary_loop(loop, a, b, db, [dy](int64_t out) {
    return [row = dy + out](T ai, T bi, int64_t i) { return row[i] * F<T>::db(ai, bi); };
  });
}
template <class T, template <class> class F>
void compare(const BroadcastLoop& loop, const T* a, const T* b, uint8_t* y) {
  binary_loop(loop, a, b, y, [](int64_t) { return [](T ai, T bi, int64_t) { return uint8_t(F<T>::f(ai, bi)); }; });
}

template <class T>
void where(const BroadcastLoop& loop, const uint8_t* mask, const T* a, const T* b, T* y) {
  int last = loop.rank - 1;
  int64_t n = loop.rank ? loop.size[last] : 1, s[3] = {};
  for (int i = 0; i < 3 && loop.rank; ++i) s[i] = loop.stride[i][last];
  for_rows(loop, [&](int64_t out, const int64_t* in) {
    for (int64_t i = 0; i < n; ++i) y[out + i] = mask[in[0] + i * s[0]] ? a[in[1] + i * s[1]] : b[in[2] + i * s[2]];
  });
}

template <class T>
void accumulate(int64_t n, const T* __restrict x, T* __restrict y) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}
template <class T>
void accumulate_rows(int64_t rows, int64_t width, const T* x, int64_t x_step, T* y, int64_t y_step) {
  for (int64_t i = 0; i < rows; ++i) accumulate(width, x + i * x_step, y + i * y_step);
}
template <class T>
void scale(int64_t n, T a, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] *= a;
}

template <class T>
void permute(const PermuteLoop& loop, const T* x, T* y) {
  BroadcastLoop rows;
  rows.rank = loop.rank;
  for (int d = 0; d < loop.rank; ++d) rows.size[d] = loop.size[d], rows.stride[0][d] = loop.stride[d];
  int last = loop.rank - 1;
  int64_t n = loop.rank ? loop.size[last] : 1, s = loop.rank ? loop.stride[last] : 0;
  for_rows(rows, [&](int64_t out, const int64_t* in) {
    const T* from = x + in[0];
    T* to = y + out;
    if (s == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    else
      for (int64_t i = 0; i < n; ++i) to[i] = from[i * s];
  });
}

constexpr int kLanes = 16;     // partial results of a row, so that the loop over it is vectorised
constexpr int kColumns = 512;  // columns reduced together: pieces of rows long enough for the memory to stream

/// Pairwise: halves until 256 numbers are left, then sixteen running sums.
template <class T>
T sum_row(int64_t n, const T* x) {
  if (n > 256) {
    int64_t half = n / 2;
    return sum_row(half, x) + sum_row(n - half, x + half);
  }
  T lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] += x[i + j];
  for (int j = 0; i + j < n; ++j) lane[j] += x[i + j];
  for (int width = kLanes / 2; width; width /= 2)
    for (int j = 0; j < width; ++j) lane[j] += lane[j + width];
  return lane[0];
}

/// The same down the rows of a matrix, at most kColumns columns.
template <class T>
void sum_columns(int64_t n, int64_t columns, const T* x, int64_t stride, T* y) {
  if (n > 32) {
    T lower[kColumns];
    int64_t half = n / 2;
    sum_columns(half, columns, x, stride, y);
    sum_columns(n - half, columns, x + half * stride, stride, lower);
    for (int64_t j = 0; j < columns; ++j) y[j] += lower[j];
    return;
  }
  for (int64_t j = 0; j < columns; ++j) y[j] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < columns; ++j) y[j] += x[i * stride + j];
}

template <class T>
void sum(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  for (int64_t o = 0; o < outer; ++o) {
    if (inner == 1) {
      y[o] = sum_row(n, x + o * n);
      continue;
    }
    for (int64_t j = 0; j < inner; j += kColumns) {
      int64_t columns = inner - j < kColumns ? inner - j : kColumns;
      sum_columns(n, columns, x + o * n * inner + j, inner, y + o * inner + j);
    }
  }
}

template <class T, class Better>
void extreme(int64_t outer, int64_t n, int64_t inner, const T* x, T* y, Better better) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < inner; ++j) {
        T value = x[(o * n + i) * inner + j];
        T& best = y[o * inner + j];
        best = i == 0 || better(value, best) || value != value ? value : best;  // NaN wins: nothing is better than it
      }
}
template <class T>
void max(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  extreme(outer, n, inner, x, y, [](T a, T b) { return a > b; });
}
template <class T>
void min(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  extreme(outer, n, inner, x, y, [](T a, T b) { return a < b; });
}

template <class T>
void argmax(int64_t outer, int64_t n, int64_t inner, const T* x, int32_t* y) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t j = 0; j < inner; ++j) {
      const T* column = x + o * n * inner + j;
      int64_t best = 0;
      T top = column[0];
      for (int64_t i = 1; i < n && top == top; ++i)  // NaN wins
        if (T value = column[i * inner]; value > top || value != value) best = i, top = value;
      y[o * inner + j] = static_cast<int32_t>(best);
    }
}

template <class T>
void cumsum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x, T* y) {
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t first = 0; first < inner; first += kColumns) {
      const int64_t columns = inner - first < kColumns ? inner - first : kColumns;
      double total[kColumns];
      for (int64_t j = 0; j < columns; ++j) total[j] = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = (o * n + (reverse ? n - 1 - i : i)) * inner + first;
        for (int64_t j = 0; j < columns; ++j) {
          total[j] += double(x[at + j]);
          y[at + j] = static_cast<T>(total[j]);
        }
      }
    }
}

template <class T>
double sum_of_squares(int64_t n, const T* x) {
  double lane[kLanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int j = 0; j < kLanes; ++j) lane[j] += double(x[i + j]) * double(x[i + j]);
  for (; i < n; ++i) total += double(x[i]) * double(x[i]);
  for (int j = 0; j < kLanes; ++j) total += lane[j];
  return total;
}

template <class T>
bool all_finite(int64_t n, const T* x) {
  T poison = 0;  // x - x is 0 for finite x and NaN otherwise
  for (int64_t i = 0; i < n; ++i)
    if (T difference = x[i] - x[i]; difference != 0) poison = difference;
  return poison == 0;
}

template <class T>
void gather_rows(int64_t n, int64_t width, const int32_t* index, const T* table, T* y) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < width; ++j) y[i * width + j] = table[int64_t(index[i]) * width + j];
}
template <class T>
void scatter_add_rows(int64_t n, int64_t width, const int32_t* index, const T* y, T* table, int64_t row_begin,
                      int64_t row_end) {
  for (int64_t i = 0; i < n; ++i) {
    if (index[i] < row_begin || index[i] >= row_end) continue;
    for (int64_t j = 0; j < width; ++j) table[int64_t(index[i]) * width + j] += y[i * width + j];
  }
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL

#include "linnet/core/general_table.h"
