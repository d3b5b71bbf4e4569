// The states of linear attention's segments on a GPU: their sums, and the scan over them.
#include "linnet/ops/linear_attention_scan.h"

namespace linnet::cuda {
namespace {

constexpr int kRows = 32;  // a chunk

/// At least one: sums of keys are wanted where there are no values, too.
template <int64_t kTile>
LINNET_FN int64_t tiles(int64_t n) {
  return n > 0 ? (n + kTile - 1) / kTile : 1;
}

/// A block makes a square of the matrix a^T b, kOwn x kOwn numbers a thread, and what belongs to it of a's sums.
template <int kSide, class T>
__global__ void __launch_bounds__(kSide* kSide) sums_kernel(TwoSums<T> all, int64_t blocks_of_first) {
  constexpr int kOwn = 4, kTile = kSide * kOwn;
  using Bytes16 = Pack<T, 16 / sizeof(T)>;
  CUDA_SHARED(Bytes16, packs, [2 * kRows * kTile * sizeof(T) / sizeof(Bytes16)]);
  T *const a = packs[0].value, *const b = a + kRows * kTile;
  CUDA_SHARED(T, by_a, [kRows]);
  CUDA_SHARED(T, by_b, [kRows]);
  CUDA_SHARED(T, e, [kRows]);
  const bool second = blockIdx.x >= blocks_of_first;
  const Sums<T>& s = second ? all.sums[1] : all.sums[0];
  int64_t place = second ? blockIdx.x - blocks_of_first : blockIdx.x;
  const int64_t across = tiles<kTile>(s.to.value_dim), down = tiles<kTile>(s.to.dim);
  const int64_t column = place % across * kTile;
  place /= across;
  const int64_t line = place % down * kTile;
  place /= down;
  const int64_t segment = place % s.cut.count, number = place / s.cut.count;
  if (segment == s.skipped) return;
  const Head<T> head(number, all.heads, all.smallest);
  const int thread = threadIdx.x, i = thread / kSide * kOwn, j = thread % kSide * kOwn;
  const int64_t begin = segment * s.cut.length;
  const int64_t end = begin + s.cut.length < s.cut.rows ? begin + s.cut.length : s.cut.rows;
  T sum[kOwn][kOwn] = {}, sum_e = 0;
  for (int64_t t = begin; t < end; t += kRows) {
    const Chunk chunk{t, 1, end - t < kRows ? end - t : kRows};
    if (thread < kRows) {
      const bool is_row = thread < chunk.n;
      by_a[thread] = is_row ? head.weight(s.a, t + thread) : T(0);
      by_b[thread] = is_row ? head.weight(s.b, t + thread) : T(0);
      e[thread] = !is_row ? T(0) : s.e ? s.e[head.number(s.cut.rows, t + thread)] : T(1);
    }
    __syncthreads();
    stage<kRows, kTile, false>(s.a, head, chunk, by_a, line, a, kTile);
    stage<kRows, kTile, false>(s.b, head, chunk, by_b, column, b, kTile);
    __syncthreads();
    multiply(kRows, a + i, kTile, b + j, kTile, sum);
    if (thread < kTile)
      for (int r = 0; r < kRows; ++r) sum_e += a[r * kTile + thread] * e[r];
    __syncthreads();
  }
  T* const to = s.to.of(number, segment);
  UNROLL for (int x = 0; x < kOwn; ++x)
      UNROLL for (int y = 0; y < kOwn; ++y) if (line + i + x < s.to.dim && column + j + y < s.to.value_dim)
          to[(line + i + x) * s.to.value_dim + column + j + y] = sum[x][y];
  if (column == 0 && thread < kTile && line + thread < s.to.dim) to[s.to.dim * s.to.value_dim + line + thread] = sum_e;
}

template <int kSide, class T>
void run_sums(const TwoSums<T>& all) {
  constexpr int64_t kTile = 4 * kSide;
  int64_t blocks[2] = {};
  for (int i = 0; i < all.count; ++i) {
    const Sums<T>& s = all.sums[i];
    blocks[i] = all.batch * all.heads * s.cut.count * tiles<kTile>(s.to.dim) * tiles<kTile>(s.to.value_dim);
  }
  run(sums_kernel<kSide, T>, static_cast<unsigned>(blocks[0] + blocks[1]), kSide * kSide, 0, all, blocks[0]);
}

}  // namespace

template <class T>
void sum_segments(const TwoSums<T>& all) {
  int64_t longest = 0;
  for (int i = 0; i < all.count; ++i)
    if (longest < all.sums[i].cut.length) longest = all.sums[i].cut.length;
  if constexpr (sizeof(T) == sizeof(float))
    if (longest > 64) return run_sums<16>(all);
  run_sums<8>(all);
}

template <class T>
void scan(int64_t heads, const Scan<T>& s) {
  const int64_t matrix = s.states.dim * s.states.value_dim, size = s.states.size();
  each(heads * size, [=] __device__(int64_t i) {
    const int64_t head = i / size, j = i % size;
    const int64_t at = j < matrix ? head * matrix + j : head * s.states.dim + j - matrix;
    T sum = 0;
    if (s.start_s) sum = (j < matrix ? s.start_s : s.start_z)[at];
    for (int64_t n = 0; n < s.count; ++n) {
      T& state = s.states.of(head, s.up ? n : s.count - 1 - n)[j];
      const T own = state;
      if (s.exclusive) state = sum;
      sum += own;
    }
    if (!s.exclusive) s.states.of(head, 0)[j] = sum;
    if (s.end_s) (j < matrix ? s.end_s : s.end_z)[at] = sum;
  });
}

Cut cut_rows(int64_t rows, int64_t heads, int64_t dim, int64_t value_dim) {
  constexpr int64_t kWanted = 1024;   // blocks: two rounds of the largest GPU
  constexpr int64_t kShortest = 128;  // rows: a shorter segment is not worth the sums
  constexpr int64_t kMultiple = 64;
  const int64_t widest = dim > value_dim ? dim : value_dim, blocks = heads * ((widest + 63) / 64);
  int64_t count = blocks > 0 ? (kWanted + blocks - 1) / blocks : 1;
  if (count > rows / kShortest) count = rows / kShortest;
  if (count < 1) count = 1;
  const int64_t length = ((rows + count - 1) / count + kMultiple - 1) / kMultiple * kMultiple;
  return {rows, length, length > 0 ? (rows + length - 1) / length : 0};
}

template void sum_segments(const TwoSums<float>&);
template void sum_segments(const TwoSums<double>&);
template void scan(int64_t, const Scan<float>&);
template void scan(int64_t, const Scan<double>&);

}  // namespace linnet::cuda
