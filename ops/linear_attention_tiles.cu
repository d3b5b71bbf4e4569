// The walk forward of linear attention on the tensor cores: phi(q), phi(k), v and a copy of the state in bfloat16,
// products and sums in float, the state itself in the warps' registers.
#include "linnet/ops/linear_attention_scan.h"

namespace linnet::cuda {
namespace {

constexpr int kChunk = 64, kDim = 64, kColumns = 64, kTile = 16, kWarps = kChunk / kTile;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
constexpr int kTiles = kColumns / kTile;
constexpr int kLd = kDim + 8, kLdSum = kTile + 4, kLdScore = kTile + 8;  // rows apart: no two in one bank

using Bf16 = __nv_bfloat16;
namespace wm = nvcuda::wmma;
using Left = wm::fragment<wm::matrix_a, kTile, kTile, kTile, Bf16, wm::row_major>;
using TurnedLeft = wm::fragment<wm::matrix_a, kTile, kTile, kTile, Bf16, wm::col_major>;
using Right = wm::fragment<wm::matrix_b, kTile, kTile, kTile, Bf16, wm::row_major>;
using TurnedRight = wm::fragment<wm::matrix_b, kTile, kTile, kTile, Bf16, wm::col_major>;
using Sums = wm::fragment<wm::accumulator, kTile, kTile, kTile, float>;

__device__ void stage(const Rows<float>& x, const Head<float>& head, const Chunk& chunk, const float* weight,
                      int64_t first, Bf16* to) {
  const float* const from = head.row(x.at, 0) + first;
  for (int i = threadIdx.x; i < kChunk * kDim; i += blockDim.x) {
    const int r = i / kDim, j = i % kDim;
    float value = 0;
    if (weight[r] != 0 && first + j < x.width) value = phi(x.map, from[chunk(r) * x.at.row + j]);
    const Bf16 rounded = __float2bfloat16(value);
    to[r * kLd + j] = rounded;
  }
}

/// sum += a b, both kTile wide in a, over kDim / kTile tiles.
template <class A, class B>
__device__ void multiply(Sums& sum, const Bf16* a, int a_step, const Bf16* b, int b_step) {
  for (int i = 0; i < kDim / kTile; ++i) {
    A left;
    B right;
    wm::load_matrix_sync(left, a + i * a_step, kLd);
    wm::load_matrix_sync(right, b + i * b_step, kLd);
    wm::mma_sync(sum, left, right, sum);
  }
}

/// Tiles begin on 32 bytes, which the tensor cores ask for.
struct __align__(32) Shared {
  Bf16 q[kChunk * kLd], k[kChunk * kLd], v[kChunk * kLd], s[kDim * kLd];
  float tiles[kWarps * kTile * kLdSum];
  Bf16 scores[kWarps * kTile * kLdScore];
  float z[kDim], by_q[kChunk], by_k[kChunk];
};

/// A warp has 16 rows of the outputs, and of the state; a lane, where numbers are looked at, half a row of a tile.
struct Warp {
  float* tile;    // [kTile][kLdSum]
  Bf16* rounded;  // [kTile][kLdScore]
  int row, column;

  __device__ Warp(float* tiles, Bf16* scores) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    tile = tiles + warp * kTile * kLdSum;
    rounded = scores + warp * kTile * kLdScore;
    row = lane % kTile;
    column = lane / kTile * (kTile / 2);
  }
  __device__ float& at(int j) const { return tile[row * kLdSum + column + j]; }
  __device__ void put(const Sums& sums) const {
    __syncwarp();
    wm::store_matrix_sync(tile, sums, kLdSum, wm::mem_row_major);
    __syncwarp();
  }
  /// A row's sum, of both its lanes.
  __device__ static float both(float sum) { return sum + __shfl_xor_sync(0xffffffffu, sum, kTile); }
};
#endif

__global__ void __launch_bounds__(kWarps * 32, 4) tiles_kernel(Walks<float> all) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  CUDA_SHARED(Shared, shared, [1]);
  Bf16 *const q = shared->q, *const k = shared->k, *const v = shared->v, *const s = shared->s;
  float *const z = shared->z, *const by_q = shared->by_q, *const by_k = shared->by_k;
  const Walk<float>& w = all.walk[0];
  const int64_t across = (w.b.width + kColumns - 1) / kColumns, blocks = w.cut.count * across;
  const int64_t number = blockIdx.x / blocks, place = blockIdx.x % blocks;
  const int64_t segment = place / across, first = place % across * kColumns;
  const Head<float> head(number, all.heads, all.smallest);
  const int thread = threadIdx.x, begin_row = thread / 32 * kTile;
  const Warp warp(shared->tiles, shared->scores);
  const float* const state = w.states.data ? w.states.of(number, w.each ? segment : 0) : nullptr;
  const bool has_denominator = w.beside == Beside::denominator;

  Sums own[kTiles];  // the state's rows begin_row ...
  const auto round_state = [&](int m) {
    for (int j = 0; j < kTile / 2; ++j) {
      const Bf16 rounded = __float2bfloat16(warp.at(j));
      s[(begin_row + warp.row) * kLd + m * kTile + warp.column + j] = rounded;
    }
  };
  UNROLL for (int m = 0; m < kTiles; ++m) {
    const int64_t d = begin_row + warp.row, column = first + m * kTile + warp.column;
    __syncwarp();
    for (int j = 0; j < kTile / 2; ++j) {
      const bool is_in = state && d < w.a.width && column + j < w.b.width;
      warp.at(j) = is_in ? state[d * w.b.width + column + j] : 0.f;
    }
    __syncwarp();
    wm::load_matrix_sync(own[m], warp.tile, kLdSum, wm::mem_row_major);
    round_state(m);
  }
  if (thread < kDim) z[thread] = state && thread < w.a.width ? state[w.a.width * w.b.width + thread] : 0.f;

  const int64_t begin = segment * w.cut.length;
  const int64_t end = begin + w.cut.length < w.cut.rows ? begin + w.cut.length : w.cut.rows;
  for (int64_t t = begin; t < end; t += kChunk) {
    const Chunk chunk{t, 1, end - t < kChunk ? end - t : kChunk};
    if (thread < kChunk) {
      by_q[thread] = thread < chunk.n ? head.weight(w.c, t + thread) : 0.f;
      by_k[thread] = w.causal && thread < chunk.n ? head.weight(w.a, t + thread) : 0.f;
    }
    __syncthreads();
    stage(w.c, head, chunk, by_q, 0, q);
    if (w.causal) {
      stage(w.a, head, chunk, by_k, 0, k);
      stage(w.b, head, chunk, by_k, first, v);
    }
    __syncthreads();

    Sums out[kTiles];
    const Bf16* const q_rows = q + begin_row * kLd;
    UNROLL for (int m = 0; m < kTiles; ++m) {
      wm::fill_fragment(out[m], 0.f);
      multiply<Left, Right>(out[m], q_rows, kTile, s + m * kTile, kTile * kLd);
    }
    float sum = 0;
    if (has_denominator)
      for (int d = warp.column * 4; d < warp.column * 4 + kDim / 2; ++d)
        sum += __bfloat162float(q_rows[warp.row * kLd + d]) * z[d];
    for (int keys = 0; w.causal && keys <= begin_row; keys += kTile) {
      Sums products;
      wm::fill_fragment(products, 0.f);
      multiply<Left, TurnedRight>(products, q_rows, kTile, k + keys * kLd, kTile);
      warp.put(products);
      for (int j = 0; j < kTile / 2; ++j) {
        const float score = keys < begin_row || warp.column + j <= warp.row ? warp.at(j) : 0.f;
        sum += score;
        const Bf16 rounded = __float2bfloat16(score);
        warp.rounded[warp.row * kLdScore + warp.column + j] = rounded;
      }
      __syncwarp();
      Left left;
      wm::load_matrix_sync(left, warp.rounded, kLdScore);
      UNROLL for (int m = 0; m < kTiles; ++m) {
        Right right;
        wm::load_matrix_sync(right, v + keys * kLd + m * kTile, kLd);
        wm::mma_sync(out[m], left, right, out[m]);
      }
    }
    const int r = begin_row + warp.row;
    const float total = Warp::both(sum);
    const float denominator = by_q[r] == 0 ? 0.f : has_denominator ? total + w.eps : 1.f;
    const bool none = abs(denominator) < head.smallest;
    if (first == 0 && warp.column == 0 && r < chunk.n) w.d[head.number(w.cut.rows, t + r)] = denominator;
    UNROLL for (int m = 0; m < kTiles; ++m) {
      warp.put(out[m]);
      if (r >= chunk.n) continue;
      float* const to = head.row(w.y, t + r);
      for (int j = 0; j < kTile / 2; ++j) {
        const int64_t column = first + m * kTile + warp.column + j;
        if (column < w.b.width) to[column] = none ? 0.f : warp.at(j) / denominator;
      }
    }
    __syncthreads();
    if (!w.causal) continue;
    UNROLL for (int m = 0; m < kTiles; ++m) {
      multiply<TurnedLeft, Right>(own[m], k + begin_row, kTile * kLd, v + m * kTile, kTile * kLd);
      warp.put(own[m]);
      round_state(m);
    }
    if (thread < kDim) {
      float more = 0;
      for (int row = 0; row < kChunk; ++row) more += __bfloat162float(k[row * kLd + thread]);
      z[thread] += more;
    }
    __syncthreads();
  }
#endif
}

}  // namespace

bool walk_tiles(const Walks<float>& all) {
  static const bool has_tiles = [] {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0), "device properties");
    return properties.major >= 8;
  }();
  const Walk<float>& w = all.walk[0];
  if (!has_tiles || w.a.width > kDim || w.b.width == 0) return false;
  const int64_t blocks = w.cut.count * ((w.b.width + kColumns - 1) / kColumns);
  run(tiles_kernel, static_cast<unsigned>(all.batch * all.heads * blocks), kWarps * 32, 0, all);
  return true;
}

}  // namespace linnet::cuda
