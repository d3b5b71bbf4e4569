// What a block of either walk of linear attention does alike, in full (linear_attention_walk.cu) and on the tensor
// cores (linear_attention_tiles.cu): which part it has, what rows are multiplied by, how outputs end. Private to .cu
// files.
#pragma once
#include "linnet/ops/linear_attention_scan.h"

namespace linnet::cuda {

/// Tiles of so many columns across a walk's outputs; at least one, as denominators are wanted of no values, too.
template <class T>
LINNET_FN int64_t tiles_across(const Walk<T>& w, int64_t columns) {
  return w.b.width > 0 ? (w.b.width + columns - 1) / columns : 1;
}
template <class T>
LINNET_FN int64_t blocks_of(const Walk<T>& w, int64_t columns) {
  return w.cut.count * tiles_across(w, columns);
}
/// Of one head.
template <class T>
int64_t blocks_of(const Walks<T>& all, int64_t columns) {
  int64_t blocks = 0;
  for (int64_t i = 0; i < all.count; ++i) blocks += blocks_of(all.walk[i], columns);
  return blocks;
}

/// The part of block blockIdx.x, where a head has `blocks`: a segment of a walk of a head, and a tile of its columns.
template <class T>
struct Part {
  int which = 0;
  int64_t number, segment, tile;

  __device__ Part(const Walks<T>& all, int64_t blocks, int64_t columns) : number(blockIdx.x / blocks) {
    int64_t place = blockIdx.x % blocks;
    for (; which + 1 < all.count && place >= blocks_of(all.walk[which], columns); ++which)
      place -= blocks_of(all.walk[which], columns);
    const int64_t across = tiles_across(all.walk[which], columns);
    segment = place / across;
    tile = place % across;
  }
  __device__ const T* state(const Walk<T>& w) const {
    return w.states.data ? w.states.of(number, w.each ? segment : 0) : nullptr;
  }
};

/// f(chunk) for each `rows` rows of a segment, in the walk's direction.
template <class T, class F>
__device__ void each_chunk(const Walk<T>& w, int64_t segment, int rows, F f) {
  const int64_t begin = segment * w.cut.length;
  const int64_t end = begin + w.cut.length < w.cut.rows ? begin + w.cut.length : w.cut.rows;
  for (int64_t done = begin; done < end; done += rows) {
    const int n = end - done < rows ? static_cast<int>(end - done) : rows;
    f(w.up ? Chunk{done, 1, n} : Chunk{end - 1 - (done - begin), -1, n});
  }
}

/// Number (p, m) of X, a's width x b's, in the state that it begins with, or zero.
template <class T>
__device__ T of_state(const Walk<T>& w, const T* state, int64_t p, int64_t m) {
  const int64_t rows = w.a.width, columns = w.b.width;
  if (!state || p >= rows || m >= columns) return 0;
  return state[w.turned ? m * rows + p : p * columns + m];
}
/// Number n of what stands beside X: of its row, or of its column.
template <class T>
__device__ T of_state_beside(const Walk<T>& w, const T* state, int64_t n) {
  const int64_t count = w.beside == Beside::row ? w.b.width : w.a.width;
  return state && n < count ? state[w.a.width * w.b.width + n] : T(0);
}

/// What a chunk's rows are multiplied by, and what they have in X's one row more (Beside::row): in shared memory, zeros
/// for rows that are not there.
template <class T>
struct Weights {
  T *a, *b, *c, *e_a, *e_c;

  /// Each row by a thread.
  __device__ void find(const Walk<T>& w, const Head<T>& head, const Chunk& chunk, int rows) const {
    const int r = threadIdx.x;
    if (r >= rows) return;
    const bool is_row = r < chunk.n;
    const int64_t t = chunk(r);
    c[r] = is_row ? head.weight(w.c, t) : T(0);
    if (w.beside == Beside::row) e_c[r] = !is_row ? T(0) : w.e_c ? w.e_c[head.number(w.cut.rows, t)] : T(1);
    if (!w.causal) return;
    a[r] = is_row ? head.weight(w.a, t) : T(0);
    b[r] = is_row ? head.weight(w.b, t) : T(0);
    if (w.beside == Beside::row) e_a[r] = !is_row ? T(0) : w.e_a ? w.e_a[head.number(w.cut.rows, t)] : T(1);
  }
};

/// Row t of the outputs, from column `first`: sums are divided, and on the ways back multiplied by phi'.
template <class T>
struct OutputRow {
  T* to;
  const T* slope_of;
  FeatureMap map;
  T over;
  bool none;

  /// weight: of c's row; d: its denominator, where the walk makes them.
  __device__ OutputRow(const Walk<T>& w, const Head<T>& head, int64_t t, int64_t first, T weight, T d)
      : to(head.row(w.y, t) + first),
        slope_of(w.slope_of.data ? head.row(w.slope_of, t) + first : nullptr),
        map(w.slope_map),
        over(w.d      ? d
             : w.over ? w.over[head.number(w.cut.rows, t)]
                      : T(1)),
        none(weight == 0 || abs(over) < head.smallest) {}
  __device__ void put(int64_t j, T sum) const {
    T value = none ? T(0) : sum / over;
    if (slope_of && !none) value *= slope(map, phi(map, slope_of[j]));
    to[j] = value;
  }
};

}  // namespace linnet::cuda
