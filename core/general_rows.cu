// Rows of a table on a GPU: gathered, and added to in an order that depends on nothing.
#include "linnet/core/cuda_stream.h"
#include "linnet/core/general_cuda.h"
#include "linnet/core/sort.h"

namespace linnet::cuda {

template <class T>
void gather_rows(int64_t n, int64_t width, const int32_t* index, const T* table, T* y) {
  each(n * width, [=] __device__(int64_t i) { y[i] = table[index[i / width] * width + i % width]; });
}

namespace {

constexpr int64_t kPiece = 32;  // rows that one thread adds up, of one column

/// table[key[i]] += y[place[i]], keys in rising order; place is null where y lies in that order itself. Sums are those
/// of runs of a key within a piece of kPiece places. A run inside a piece is all of its key, and is added at once; a
/// piece's first and last may go on in its neighbours: they become rows of a sequence 16 times shorter, which is in
/// order too. So no two threads add to one number, and one frequent key is a tree of sums.
template <class T>
void add_runs(int64_t n, int64_t width, const int32_t* key, const int32_t* place, const T* y, T* table, int32_t rows) {
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  Scratch<T> rest(pieces > 1 ? 2 * pieces * width : 0);
  Scratch<int32_t> rest_keys(pieces > 1 ? 2 * pieces : 0);
  T* const rest_y = pieces > 1 ? rest.data() : nullptr;  // (piece, first or last run, column)
  int32_t* const rest_key = pieces > 1 ? rest_keys.data() : nullptr;
  each(pieces * width, [=] __device__(int64_t at) {
    const int64_t piece = at / width, j = at - piece * width, begin = piece * kPiece;
    const int64_t end = begin + kPiece < n ? begin + kPiece : n;
    T sum = T(0), first = T(0);
    bool is_first = rest_y != nullptr;
    for (int64_t i = begin; i < end; ++i) {
      sum += y[(place ? place[i] : i) * width + j];
      const bool ends = i + 1 == end || key[i + 1] != key[i];
      if (!ends || (rest_y && i + 1 == end)) continue;
      if (is_first)
        first = sum, is_first = false;
      else if (key[i] < rows)
        table[key[i] * width + j] += sum;
      sum = T(0);
    }
    if (!rest_y) return;
    rest_y[2 * piece * width + j] = first;
    rest_y[(2 * piece + 1) * width + j] = sum;
    if (j == 0) rest_key[2 * piece] = key[begin], rest_key[2 * piece + 1] = key[end - 1];
  });
  if (pieces > 1)
    add_runs(2 * pieces, width, rest_key, static_cast<const int32_t*>(nullptr), static_cast<const T*>(rest_y), table,
             rows);
}

}  // namespace

template <class T>
void scatter_add_rows(int64_t n, int64_t width, const int32_t* index, const T* y, T* table, int64_t row_begin,
                      int64_t row_end) {
  const auto rows = static_cast<int32_t>(row_end - row_begin);
  Scratch<int32_t> keys(n), sorted(n), places(n);
  int32_t* const key = keys.data();  // `rows` where the index is none of them
  each(n, [=] __device__(int64_t i) {
    const bool is_one = index[i] >= row_begin && index[i] < row_end;
    key[i] = is_one ? static_cast<int32_t>(index[i] - row_begin) : rows;
  });
  sort(n, int64_t{rows} + 1, key, sorted.data(), places.data());
  if (n > 0) add_runs(n, width, sorted.data(), places.data(), y, table + row_begin * width, rows);
}

#define LINNET_ROWS(T)                                                       \
  template void gather_rows(int64_t, int64_t, const int32_t*, const T*, T*); \
  template void scatter_add_rows(int64_t, int64_t, const int32_t*, const T*, T*, int64_t, int64_t);
LINNET_ROWS(float)
LINNET_ROWS(double)

}  // namespace linnet::cuda
