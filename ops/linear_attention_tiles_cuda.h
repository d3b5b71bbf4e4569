// What a walk of linear attention on the tensor cores is made of: tiles of 16 x 16 bfloat16 in shared memory, their
// products with sums in float, and a warp's look at them. Private to .cu files; nothing is here for older GPUs.
#pragma once
#include "linnet/ops/linear_attention_part.h"

namespace linnet::cuda {

constexpr int kChunk = 64, kColumns = 64, kTile = 16;  // rows at once; columns of a block
constexpr int kBands = kChunk / kTile;

/// For rows of a and c up to kDim wide: a warp has 16 rows of X, and some tiles, side by side, of the chunk's outputs.
template <int kDim_>
struct TileForm {
  static constexpr int kDim = kDim_, kWarps = kDim / kTile, kThreads = 32 * kWarps;
  static constexpr int kTiles = kBands * (kColumns / kTile) / kWarps;
};

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
using Bf16 = __nv_bfloat16;
namespace wm = nvcuda::wmma;
using Left = wm::fragment<wm::matrix_a, kTile, kTile, kTile, Bf16, wm::row_major>;
using TurnedLeft = wm::fragment<wm::matrix_a, kTile, kTile, kTile, Bf16, wm::col_major>;
using Right = wm::fragment<wm::matrix_b, kTile, kTile, kTile, Bf16, wm::row_major>;
using TurnedRight = wm::fragment<wm::matrix_b, kTile, kTile, kTile, Bf16, wm::col_major>;
using TileSums = wm::fragment<wm::accumulator, kTile, kTile, kTile, float>;

/// Rows of `kWide` in shared memory, so far apart that no two lie in one bank. Tiles begin on 32 bytes, which the
/// tensor cores ask for.
template <int kWide>
struct Bf16Rows {
  static constexpr int kLd = kWide + 8;
  Bf16 at[kChunk * kLd];
};

/// Numbers first ... of a chunk's rows, rounded; zeros where there are none.
template <int kWide>
__device__ void stage(const Rows<float>& x, const Head<float>& head, const Chunk& chunk, const float* weight,
                      int64_t first, Bf16Rows<kWide>& to) {
  const float* const from = head.row(x.at, 0) + first;
  for (int i = threadIdx.x; i < kChunk * kWide; i += blockDim.x) {
    const int r = i / kWide, j = i % kWide;
    const float by = weight[r];
    float value = 0;
    if (by != 0 && first + j < x.width) value = phi(x.map, from[chunk(r) * x.at.row + j]) * by;
    const Bf16 rounded = __float2bfloat16(value);
    to.at[r * to.kLd + j] = rounded;
  }
}

/// sums += a b over `count` tiles, which lie `step` apart, with rows `ld` apart; the sums are of b's tiles side by
/// side.
template <class A, class B, int kAcross>
__device__ void multiply(int count, TileSums (&sums)[kAcross], const Bf16* a, int a_step, int a_ld, const Bf16* b,
                         int b_step, int b_ld) {
  for (int i = 0; i < count; ++i) {
    A left;
    wm::load_matrix_sync(left, a + i * a_step, a_ld);
    UNROLL for (int m = 0; m < kAcross; ++m) {
      B right;
      wm::load_matrix_sync(right, b + i * b_step + m * kTile, b_ld);
      wm::mma_sync(sums[m], left, right, sums[m]);
    }
  }
}

/// A warp's own tile, where single numbers of a fragment can be seen: a lane has half a row of it.
struct TileView {
  static constexpr int kLd = kTile + 4, kLdRounded = kTile + 8, kOwn = kTile / 2;
  struct Memory {
    float sums[kTile * kLd];
    Bf16 rounded[kTile * kLdRounded];
  };
  Memory& memory;
  int row, column;

  __device__ explicit TileView(Memory& own)
      : memory(own), row(threadIdx.x % kTile), column(threadIdx.x % 32 / kTile * kOwn) {}
  __device__ float& at(int j) const { return memory.sums[row * kLd + column + j]; }
  __device__ Bf16& rounded(int j) const { return memory.rounded[row * kLdRounded + column + j]; }
  __device__ void put(const TileSums& sums) const {
    __syncwarp();
    wm::store_matrix_sync(memory.sums, sums, kLd, wm::mem_row_major);
    __syncwarp();
  }
  /// A row's sum, of both its lanes.
  __device__ static float both(float sum) { return sum + __shfl_xor_sync(0xffffffffu, sum, kTile); }
};
#endif

}  // namespace linnet::cuda
