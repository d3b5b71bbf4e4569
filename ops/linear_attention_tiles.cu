// The walk of linear attention on the tensor cores: a, b, c and a copy of X in bfloat16, products and sums in float, X
// itself in the warps' registers.
#include "linnet/ops/linear_attention_tiles_cuda.h"

namespace linnet::cuda {
namespace {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <class Form>
struct __align__(32) Shared {
  Bf16Rows<Form::kDim> a, c;
  Bf16Rows<kColumns> b;
  Bf16 x[Form::kDim * Bf16Rows<kColumns>::kLd], rest[Form::kDim * Bf16Rows<kColumns>::kLd];  // X is their sum
  TileView::Memory tiles[Form::kWarps];
  float beside[Form::kDim];  // [kColumns]: X's one row more; or [kDim]: its one column more
  float by_a[kChunk], by_b[kChunk], by_c[kChunk], e_a[kChunk], e_c[kChunk];
};

/// A block's part of a walk.
template <class Form>
struct Walker {
  static constexpr int kDim = Form::kDim, kTiles = Form::kTiles, kAcross = kColumns / kTile;
  static constexpr int kLd = Bf16Rows<kDim>::kLd, kLdB = Bf16Rows<kColumns>::kLd;

  const Walk<float>& w;
  const Head<float> head;
  const int64_t column;  // the block's first
  Shared<Form>* const shared;
  const Weights<float> by;
  const TileView tile;
  const int line;       // the warp's first row of X
  const int row, side;  // the warp's first row and column of the chunk's outputs

  __device__ Walker(const Walk<float>& walk, const Head<float>& of, int64_t number, Shared<Form>* memory)
      : w(walk),
        head(of),
        column(number * kColumns),
        shared(memory),
        by{memory->by_a, memory->by_b, memory->by_c, memory->e_a, memory->e_c},
        tile(memory->tiles[threadIdx.x / 32]),
        line(threadIdx.x / 32 * kTile),
        row(kTiles == kAcross ? line : line % kChunk),
        side(kTiles == kAcross ? 0 : line / kChunk * kTiles * kTile) {}

  /// Tiles across a row of a and c. Known when compiled, the loops over them are unrolled: for 128, too many registers.
  __device__ int depth() const { return (kDim == 64 ? kDim : static_cast<int>(w.a.width) + kTile - 1) / kTile; }

  /// The tile that is looked at is X's, in the warp's rows and column m: into the copy.
  __device__ void round_state(int m) const {
    const int first = (line + tile.row) * kLdB + m * kTile + tile.column;
    for (int j = 0; j < TileView::kOwn; ++j) {
      const Bf16 rounded = __float2bfloat16(tile.at(j)),
                 rest = __float2bfloat16(tile.at(j) - __bfloat162float(rounded));
      shared->x[first + j] = rounded;
      shared->rest[first + j] = rest;
    }
  }

  __device__ void load_state(const float* state, TileSums (&x)[kAcross]) const {
    UNROLL for (int m = 0; m < kAcross; ++m) {
      __syncwarp();
      for (int j = 0; j < TileView::kOwn; ++j)
        tile.at(j) = of_state(w, state, line + tile.row, column + m * kTile + tile.column + j);
      __syncwarp();
      wm::load_matrix_sync(x[m], tile.memory.sums, TileView::kLd, wm::mem_row_major);
      round_state(m);
    }
    const int n = threadIdx.x;
    if (w.beside == Beside::row && n < kColumns) shared->beside[n] = of_state_beside(w, state, column + n);
    if (w.beside == Beside::denominator && n < kDim) shared->beside[n] = of_state_beside(w, state, int64_t{n});
  }

  /// y = c X; of the denominators what comes from X, half a row a lane.
  __device__ float multiply_state(TileSums (&y)[kTiles]) const {
    const Bf16* const c = shared->c.at + row * kLd;
    UNROLL for (int m = 0; m < kTiles; ++m) wm::fill_fragment(y[m], 0.f);
    multiply<Left, Right>(depth(), y, c, kTile, kLd, shared->rest + side, kTile * kLdB, kLdB);
    multiply<Left, Right>(depth(), y, c, kTile, kLd, shared->x + side, kTile * kLdB, kLdB);
    float sum = 0;
    if (w.beside != Beside::denominator) return sum;
    const int first = tile.column == 0 ? 0 : kDim / 2;
    for (int p = first; p < first + kDim / 2; ++p) sum += __bfloat162float(c[tile.row * kLd + p]) * shared->beside[p];
    return sum;
  }

  /// y += mask(c a^T) b, a tile of scores after the other; of the denominators what comes from the chunk.
  __device__ float multiply_scores(TileSums (&y)[kTiles]) const {
    float sum = 0;
    for (int key = 0; key <= row; key += kTile) {
      TileSums scores[1];
      wm::fill_fragment(scores[0], 0.f);
      multiply<Left, TurnedRight>(depth(), scores, shared->c.at + row * kLd, kTile, kLd, shared->a.at + key * kLd,
                                  kTile, kLd);
      tile.put(scores[0]);
      for (int j = 0; j < TileView::kOwn; ++j) {
        float score = tile.at(j);
        if (w.beside == Beside::row) score += by.e_c[row + tile.row] * by.e_a[key + tile.column + j];
        if (key == row && tile.column + j > tile.row) score = 0;
        const Bf16 rounded = __float2bfloat16(score);
        tile.rounded(j) = rounded;
        sum += __bfloat162float(rounded);  // of what b is multiplied by: the weights add up to 1
      }
      __syncwarp();
      multiply<Left, Right>(1, y, tile.memory.rounded, 0, TileView::kLdRounded, shared->b.at + key * kLdB + side, 0,
                            kLdB);
    }
    return sum;
  }

  /// sum: a lane's share of its row's denominator.
  __device__ void store(const Chunk& chunk, const TileSums (&y)[kTiles], float sum) const {
    const int r = row + tile.row;
    const bool is_row = r < chunk.n;
    const int64_t t = chunk(is_row ? r : 0);
    const float weight = by.c[r], all = TileView::both(sum);
    const float d = weight == 0 ? 0.f : w.beside == Beside::denominator ? all + w.eps : 1.f;
    if (w.d && column + side + tile.column == 0 && is_row) w.d[head.number(w.cut.rows, t)] = d;
    const OutputRow<float> to(w, head, t, column, weight, d);
    UNROLL for (int m = 0; m < kTiles; ++m) {
      tile.put(y[m]);
      for (int j = 0; is_row && j < TileView::kOwn; ++j) {
        const int n = side + m * kTile + tile.column + j;
        float value = tile.at(j);
        if (w.beside == Beside::row) value += by.e_c[r] * shared->beside[n];
        if (column + n < w.b.width) to.put(n, value);
      }
    }
  }

  /// What the chunk adds to the thread's number beside X.
  __device__ float sum_beside() const {
    float sum = 0;
    const int n = threadIdx.x;
    if (w.beside == Beside::row && n < kColumns)
      for (int r = 0; r < kChunk; ++r) sum += by.e_a[r] * __bfloat162float(shared->b.at[r * kLdB + n]);
    if (w.beside == Beside::denominator && n < kDim)
      for (int r = 0; r < kChunk; ++r) sum += __bfloat162float(shared->a.at[r * kLd + n]);
    return sum;
  }

  /// X += a^T b
  __device__ void add_to_state(TileSums (&x)[kAcross], float more) const {
    multiply<TurnedLeft, Right>(kBands, x, shared->a.at + line, kTile * kLd, kLd, shared->b.at, kTile * kLdB, kLdB);
    UNROLL for (int m = 0; m < kAcross; ++m) {
      tile.put(x[m]);
      round_state(m);
    }
    const int n = threadIdx.x;
    if (n < (w.beside == Beside::row ? kColumns : w.beside == Beside::denominator ? kDim : 0))
      shared->beside[n] += more;
  }

  __device__ void run(const float* state, int64_t segment) const {
    TileSums x[kAcross];  // the warp's rows of X
    load_state(state, x);
    each_chunk(w, segment, kChunk, [&](const Chunk& chunk) {
      by.find(w, head, chunk, kChunk);
      __syncthreads();
      stage(w.c, head, chunk, by.c, 0, shared->c);
      if (w.causal) {
        stage(w.a, head, chunk, by.a, 0, shared->a);
        stage(w.b, head, chunk, by.b, column, shared->b);
      }
      __syncthreads();
      TileSums y[kTiles];
      float sum = multiply_state(y), more = 0;
      if (w.causal) {
        sum += multiply_scores(y);
        more = sum_beside();
      }
      store(chunk, y, sum);
      __syncthreads();
      if (w.causal) add_to_state(x, more);
    });
  }
};
template <class Form>
constexpr size_t kShared = sizeof(Shared<Form>);
#else
template <class Form>
constexpr size_t kShared = 0;
#endif

/// Two blocks of 256 threads, or four of 128, at least.
template <class Form>
__global__ void __launch_bounds__(Form::kThreads, 512 / Form::kThreads) tiles_kernel(Walks<float> all, int64_t blocks) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  CUDA_DYNAMIC_SHARED(Shared<Form>, shared);
  const Part<float> part(all, blocks, kColumns);
  const Walk<float>& w = all.walk[part.which];
  const Walker<Form> walker(w, Head<float>(part.number, all.heads, all.smallest), part.tile, shared);
  walker.run(part.state(w), part.segment);
#endif
}

template <class Form>
void run_tiles(const Walks<float>& all) {
  static const bool allowed = (allow_shared(tiles_kernel<Form>, kShared<Form>), true);
  static_cast<void>(allowed);
  const int64_t blocks = blocks_of(all, kColumns);
  run(tiles_kernel<Form>, static_cast<unsigned>(all.batch * all.heads * blocks), Form::kThreads, kShared<Form>, all,
      blocks);
}

}  // namespace

bool fits_tiles(int64_t width) {
  static const bool has_tiles = [] {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "device properties");
    return properties.major >= 8;
  }();
  return has_tiles && width <= 128;
}

Walks<float> walk_tiles(const Walks<float>& all) {
  Walks<float> narrow = all, wide = all, others = all;
  narrow.count = wide.count = others.count = 0;
  for (int64_t i = 0; i < all.count; ++i) {
    const int64_t width = all.walk[i].a.width;
    Walks<float>& to = !fits_tiles(width) ? others : width > 64 ? wide : narrow;
    to.walk[to.count++] = all.walk[i];
  }
  if (narrow.count > 0) run_tiles<TileForm<64>>(narrow);
  if (wide.count > 0) run_tiles<TileForm<128>>(wide);
  return others;
}

}  // namespace linnet::cuda
