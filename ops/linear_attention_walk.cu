// The walk of linear attention over a segment on a GPU: a block a segment and tile of columns, chunk after chunk, with
// X in shared memory all the way. The rows of c and a come in pieces, so that they may be as wide as they like.
#include "linnet/ops/linear_attention_part.h"

namespace linnet::cuda {
namespace {

constexpr size_t kMostShared = 64 * 1024;  // of the smallest device, sm_75

/// kSide x kSide threads, chunks of kRows rows, tiles of kColumns columns. X and what lies beside it are in shared
/// memory, or, where that is too small, in global memory.
template <int kSide_, int kRows_, int kColumns_, bool kShared_>
struct Form {
  static constexpr int kSide = kSide_, kThreads = kSide * kSide, kRows = kRows_, kColumns = kColumns_;
  static constexpr int kPiece = kRows / 2, kLd = kRows + 4;
  static constexpr bool kShared = kShared_;

  LINNET_FN static int64_t depth(int64_t width) { return (width + kPiece - 1) / kPiece * kPiece; }
  static int64_t shared(int64_t depth) {  // numbers
    return kRows * (kLd + kColumns) + 6 * kRows + (kShared ? large(depth) : 0);
  }
  /// X, with the row or the column beside it.
  LINNET_FN static int64_t large(int64_t depth) { return depth * kColumns + kColumns + depth; }
};

/// A block's part of a walk. Barriers stand behind what is written to shared memory, and before it is written again.
template <class Form, class T>
struct Walker {
  static constexpr int kRows = Form::kRows, kColumns = Form::kColumns, kPiece = Form::kPiece, kLd = Form::kLd;
  static constexpr int kI = kRows / Form::kSide, kJ = kColumns / Form::kSide, kP = kPiece / Form::kSide;

  const Walk<T>& w;
  const Head<T> head;
  const int64_t column;  // the tile's first
  const int64_t depth;
  // A thread's rows i, i + 1, ... and columns j, j + 1, ... of y; columns `key` ... of the scores.
  const int i, j, key;
  T *pieces, *b, *beside, *d, *x;
  Weights<T> by;

  __device__ Walker(const Walk<T>& walk, const Head<T>& of, int64_t tile, T* memory, T* large)
      : w(walk),
        head(of),
        column(tile * kColumns),
        depth(Form::depth(walk.a.width)),
        i(threadIdx.x / Form::kSide * kI),
        j(threadIdx.x % Form::kSide * kJ),
        key(threadIdx.x % Form::kSide * kI) {
    pieces = memory;           // [kPiece][kLd] of c, and of a; then the scores, [kRows][kLd], a row a key
    b = pieces + kRows * kLd;  // [kRows][kColumns]
    by.a = b + kRows * kColumns;
    by.b = by.a + kRows;
    by.c = by.b + kRows;
    by.e_a = by.c + kRows;
    by.e_c = by.e_a + kRows;
    d = by.e_c + kRows;
    x = Form::kShared ? d + kRows : large;  // [depth][kColumns]
    beside = x + depth * kColumns;          // [kColumns]: X's one row more; or [depth]: its one column more
  }

  __device__ void load_state(const T* state) const {
    for (int64_t at = threadIdx.x; at < depth * kColumns; at += Form::kThreads)
      x[at] = of_state(w, state, at / kColumns, column + at % kColumns);
    if (w.beside == Beside::nothing) return;
    const bool is_row = w.beside == Beside::row;
    const int64_t n = is_row ? kColumns : depth, first = is_row ? column : 0;
    for (int64_t at = threadIdx.x; at < n; at += Form::kThreads) beside[at] = of_state_beside(w, state, first + at);
  }

  /// X += a^T b for a piece's rows of X, and so for the column beside it.
  __device__ void add_to_state(const T* a, int64_t first) const {
    T* const from = x + (first + threadIdx.x / Form::kSide * kP) * kColumns + j;
    T sum[kP][kJ];
    UNROLL for (int p = 0; p < kP; ++p) read(from + p * kColumns, sum[p]);
    multiply_rows(kRows, a + threadIdx.x / Form::kSide * kP * kLd, kLd, b + j, kColumns, sum);
    UNROLL for (int p = 0; p < kP; ++p) write(sum[p], from + p * kColumns);
    if (w.beside == Beside::denominator && threadIdx.x < kPiece) {
      T all = beside[first + threadIdx.x];
      for (int r = 0; r < kRows; ++r) all += a[threadIdx.x * kLd + r];
      beside[first + threadIdx.x] = all;
    }
  }

  /// y += c X, scores = c a^T, and the denominator of row threadIdx.x, piece by piece.
  __device__ T multiply_pieces(const Chunk& chunk, T (&y)[kI][kJ], T (&scores)[kI][kI]) const {
    T *const c = pieces, *const a = pieces + kPiece * kLd, denominator = 0;
    for (int64_t first = 0; first < depth; first += kPiece) {
      stage<kRows, kPiece, true>(w.c, head, chunk, by.c, first, c, kLd);
      if (w.causal) stage<kRows, kPiece, true>(w.a, head, chunk, by.a, first, a, kLd);
      __syncthreads();
      multiply(kPiece, c + i, kLd, x + first * kColumns + j, kColumns, y);
      if (w.beside == Beside::denominator && threadIdx.x < kRows)
        for (int p = 0; p < kPiece; ++p) denominator += c[p * kLd + threadIdx.x] * beside[first + p];
      if (w.causal && key <= i) multiply(kPiece, c + i, kLd, a + key, kLd, scores);
      __syncthreads();
      if (!w.causal) continue;
      add_to_state(a, first);
      __syncthreads();
    }
    return denominator;
  }

  /// y_i += sum_j score_ij b_j for j <= i: later rows are not multiplied by zero, as they may be NaN.
  __device__ T multiply_scores(T (&y)[kI][kJ], T (&scores)[kI][kI]) const {
    if (key <= i) {
      UNROLL for (int k = 0; k < kI; ++k) {
        T of_key[kI];
        UNROLL for (int r = 0; r < kI; ++r) {
          of_key[r] = scores[r][k];
          if (w.beside == Beside::row) of_key[r] += by.e_c[i + r] * by.e_a[key + k];
        }
        write(of_key, pieces + (key + k) * kLd + i);
      }
    }
    __syncthreads();
    multiply(i, pieces + i, kLd, b + j, kColumns, y);
    for (int k = 0; k < kI; ++k) {
      T score[kI], value[kJ];
      read(pieces + (i + k) * kLd + i, score);
      read(b + (i + k) * kColumns + j, value);
      UNROLL for (int r = 0; r < kI; ++r) UNROLL for (int m = 0; m < kJ; ++m) if (k <= r) y[r][m] +=
          score[r] * value[m];
    }
    T denominator = 0;
    if (w.beside == Beside::denominator && threadIdx.x < kRows)
      for (int k = 0; k <= static_cast<int>(threadIdx.x); ++k) denominator += pieces[k * kLd + threadIdx.x];
    return denominator;
  }

  /// The row beside X: y += e_c times it, which then gets the sum of b's rows by e_a.
  __device__ void multiply_row_beside(T (&y)[kI][kJ]) const {
    T row[kJ];
    read(beside + j, row);
    UNROLL for (int r = 0; r < kI; ++r) UNROLL for (int m = 0; m < kJ; ++m) y[r][m] += by.e_c[i + r] * row[m];
    if (!w.causal) return;
    __syncthreads();
    if (threadIdx.x >= kColumns) return;
    T sum = beside[threadIdx.x];
    for (int r = 0; r < kRows; ++r) sum += by.e_a[r] * b[r * kColumns + threadIdx.x];
    beside[threadIdx.x] = sum;
  }

  /// The denominators of a chunk's rows, each by one thread, for all and for the way back.
  __device__ void give_denominator(const Chunk& chunk, T sum) const {
    const int r = threadIdx.x;
    if (r < kRows) {
      const T value = by.c[r] == 0 ? T(0) : w.beside == Beside::denominator ? sum + w.eps : T(1);
      d[r] = value;
      if (column == 0 && r < chunk.n) w.d[head.number(w.cut.rows, chunk(r))] = value;
    }
    __syncthreads();
  }

  __device__ void store(const Chunk& chunk, const T (&y)[kI][kJ]) const {
    UNROLL for (int r = 0; r < kI; ++r) {
      if (i + r >= chunk.n) continue;
      const OutputRow<T> to(w, head, chunk(i + r), column, by.c[i + r], w.d ? d[i + r] : T(1));
      UNROLL for (int m = 0; m < kJ; ++m) if (column + j + m < w.b.width) to.put(j + m, y[r][m]);
    }
  }

  __device__ void run(int64_t segment) const {
    each_chunk(w, segment, kRows, [&](const Chunk& chunk) {
      T y[kI][kJ] = {}, scores[kI][kI] = {};
      by.find(w, head, chunk, kRows);
      __syncthreads();
      if (w.causal) stage<kRows, kColumns, false>(w.b, head, chunk, by.b, column, b, kColumns);
      T sum = multiply_pieces(chunk, y, scores);
      if (w.causal) sum += multiply_scores(y, scores);
      if (w.beside == Beside::row) multiply_row_beside(y);
      if (w.d) give_denominator(chunk, sum);
      store(chunk, y);
      __syncthreads();
    });
  }
};

template <class Form, class T>
__global__ void __launch_bounds__(Form::kThreads)
    walk_kernel(Walks<T> all, int64_t blocks, T* large, int64_t large_step) {
  CUDA_DYNAMIC_SHARED(T, memory);
  const Part<T> part(all, blocks, Form::kColumns);
  const Walk<T>& w = all.walk[part.which];
  const Walker<Form, T> walker(w, Head<T>(part.number, all.heads, all.smallest), part.tile, memory,
                               large + blockIdx.x * large_step);
  walker.load_state(part.state(w));
  walker.run(part.segment);
}

template <class Form, class T>
void run_walk(const Walks<T>& all, int64_t widest) {
  const int64_t blocks = blocks_of(all, Form::kColumns), number = all.batch * all.heads * blocks;
  const int64_t depth = Form::depth(widest);
  const int64_t large_step = Form::kShared ? 0 : Form::large(depth);
  Scratch<T> large(number * large_step);
  static const bool allowed = (allow_shared(walk_kernel<Form, T>, kMostShared), true);
  static_cast<void>(allowed);
  run(walk_kernel<Form, T>, static_cast<unsigned>(number), Form::kThreads,
      static_cast<size_t>(Form::shared(depth)) * sizeof(T), all, blocks, large.data(), large_step);
}

template <class Form, class T>
bool fits(int64_t widest) {
  return static_cast<size_t>(Form::shared(Form::depth(widest))) * sizeof(T) <= kMostShared;
}

}  // namespace

template <class T>
void walk(const Walks<T>& all) {
  if (all.count == 0) return;
  int64_t widest = 0, columns = 0, rows = 0;
  for (int i = 0; i < all.count; ++i) {
    const Walk<T>& w = all.walk[i];
    widest = max(widest, w.a.width);
    columns = max(columns, w.b.width);
    rows = max(rows, w.cut.rows);
  }
  using Small = Form<8, 32, 32, true>;
  if constexpr (sizeof(T) == sizeof(float)) {
    using Wide = Form<16, 64, 64, true>;
    using Narrow = Form<16, 64, 32, true>;
    if (rows > 32 && columns > 32 && fits<Wide, T>(widest)) return run_walk<Wide>(all, widest);
    if (rows > 32 && fits<Narrow, T>(widest)) return run_walk<Narrow>(all, widest);
  }
  if (fits<Small, T>(widest)) return run_walk<Small>(all, widest);
  constexpr int kWide = sizeof(T) == sizeof(float) ? 32 : 16;  // 32 doubles would spill on sm_75
  run_walk<Form<8, 32, kWide, false>>(all, widest);
}

template void walk(const Walks<float>&);
template void walk(const Walks<double>&);

}  // namespace linnet::cuda
