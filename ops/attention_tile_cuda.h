// Tiles of scores on a GPU, and the products between them and rows of q, k, v and their gradients. Private to .cu
// files.
#pragma once
#include "linnet/core/map.h"
#include "linnet/core/warp.h"

namespace linnet::cuda {

constexpr int kAcross = 16;    // threads beside each other in a tile
constexpr int kFeatures = 32;  // of each row, at a time
/// Columns of a result for one launch: what the registers hold.
template <class T>
constexpr int kMostColumns = sizeof(T) == 4 ? 128 : 32;

/// kY x kAcross threads, each with kR x kC scores: of rows y, y + kY, .. and columns x, x + kAcross, ..
template <class Number, int kY, int kR, int kC>
struct Tile {
  using T = Number;
  static constexpr int kDown = kY, kRowsEach = kR, kColumnsEach = kC;
  static constexpr int kThreads = kY * kAcross, kRows = kY * kR, kColumns = kAcross * kC;
  static constexpr int kValues = kColumns / 2;  // rows of values at a time
  // Rows lie whole packs and one pack more apart: eight threads' loads of a pack touch each bank once.
  static constexpr int kPack = 16 / sizeof(T), kStride = kFeatures + kPack, kWeightStride = kColumns + kPack;
  static constexpr int kSides = (kRows + kColumns) * kStride;
  static_assert(kColumns <= kThreads, "a thread a column");
};

/// What only a tile's rows, or only its columns, need of shared memory: the chunks of both sides of a score, or values.
template <class Tile, int kGroups>
constexpr int chunk_size() {
  constexpr int values = Tile::kValues * kAcross * kGroups;
  return (values > Tile::kSides ? values : Tile::kSides) / Tile::kPack;
}

template <class T>
using Packed = Pack<T, 16 / sizeof(T)>;

/// `rows` rows' features from `first` on, times scale; row(r) is where row r lies, or null: zeros.
template <class Tile, class Row, class T = typename Tile::T>
__device__ void load_features(T* to, int rows, int64_t first, int64_t width, T scale, Row row) {
  for (int i = threadIdx.x; i < rows * kFeatures; i += blockDim.x) {  // no constant: unrolled, it would take registers
    const int r = i / kFeatures, d = i % kFeatures;
    const T* const from = row(r);
    to[r * Tile::kStride + d] = from && first + d < width ? scale * from[first + d] : T(0);
  }
}

/// s += a b^T over `width` features of a tile's own rows a and of its columns b, times their scales. Leaves the chunk
/// free.
template <class Tile, class A, class B, class T = typename Tile::T>
__device__ void add_scores(T (&s)[Tile::kRowsEach][Tile::kColumnsEach], T* chunk, int64_t width, A a, T a_scale, B b,
                           T b_scale) {
  const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  T* const other = chunk + Tile::kRows * Tile::kStride;
  for (int64_t first = 0; first < width; first += kFeatures) {
    load_features<Tile>(chunk, Tile::kRows, first, width, a_scale, a);
    load_features<Tile>(other, Tile::kColumns, first, width, b_scale, b);
    __syncthreads();
    const int n = width - first < kFeatures ? static_cast<int>(width - first) : kFeatures;
    for (int d = 0; d < n; d += Tile::kPack) {
      Packed<T> left[Tile::kRowsEach], right[Tile::kColumnsEach];
      UNROLL for (int i = 0; i < Tile::kRowsEach; ++i) left[i] =
          *reinterpret_cast<const Packed<T>*>(chunk + (y + i * Tile::kDown) * Tile::kStride + d);
      UNROLL for (int j = 0; j < Tile::kColumnsEach; ++j) right[j] =
          *reinterpret_cast<const Packed<T>*>(other + (x + j * kAcross) * Tile::kStride + d);
      UNROLL for (int p = 0; p < Tile::kPack; ++p) {
        UNROLL for (int i = 0; i < Tile::kRowsEach; ++i) {
          UNROLL for (int j = 0; j < Tile::kColumnsEach; ++j) s[i][j] += left[i].value[p] * right[j].value[p];
        }
      }
    }
    __syncthreads();
  }
}

/// sum += w x for columns `first` .. of the rows x of a tile's columns, times scale; w is the tile's weights in shared
/// memory, which need not have been waited for. Leaves both free. A weight of 0 takes nothing, not even of NaN.
template <class Tile, int kGroups, class Row, class T = typename Tile::T>
__device__ void add_values(T (&sum)[Tile::kRowsEach][kGroups], const T* weights, T* chunk, int64_t first, int64_t width,
                           T scale, Row row) {
  constexpr int kWidth = kAcross * kGroups;
  const int x = threadIdx.x % kAcross, y = threadIdx.x / kAcross;
  for (int begin = 0; begin < Tile::kColumns; begin += Tile::kValues) {
    bool finite = true;
    for (int i = threadIdx.x; i < Tile::kValues * kWidth; i += blockDim.x) {
      const int r = i / kWidth, m = i % kWidth;
      const T* const from = row(begin + r);
      const T value = from && first + m < width ? scale * from[first + m] : T(0);
      finite = finite && value - value == T(0);
      chunk[i] = value;
    }
    const bool all_finite = __syncthreads_and(finite);
    for (int c = 0; c < Tile::kValues; c += Tile::kPack) {
      Packed<T> weight[Tile::kRowsEach];
      UNROLL for (int i = 0; i < Tile::kRowsEach; ++i) weight[i] =
          *reinterpret_cast<const Packed<T>*>(weights + (y + i * Tile::kDown) * Tile::kWeightStride + begin + c);
      UNROLL for (int p = 0; p < Tile::kPack; ++p) {
        UNROLL for (int j = 0; j < kGroups; ++j) {
          const T value = chunk[(c + p) * kWidth + x + j * kAcross];
          UNROLL for (int i = 0; i < Tile::kRowsEach; ++i) {
            if (all_finite || weight[i].value[p] != T(0)) sum[i][j] += weight[i].value[p] * value;
          }
        }
      }
    }
    __syncthreads();
  }
}

/// f over the kAcross threads of a row, for each of them.
template <class F, class T>
__device__ T over_row(T value, F f) {
  UNROLL for (int by = kAcross / 2; by > 0; by /= 2) value = f(value, __shfl_xor_sync(kWholeWarp, value, by));
  return value;
}

}  // namespace linnet::cuda
