// Rows of linear attention on a GPU, from where they lie to shared memory, and the products that are made of them
// there. Private to .cu files.
#pragma once
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/functors.h"
#include "linnet/core/map.h"
#include "linnet/ops/linear_attention_cuda.h"

namespace linnet::cuda {

template <class T>
__device__ T phi(FeatureMap map, T x) {
  return map == FeatureMap::identity ? x : map == FeatureMap::relu ? Relu<T>().f(x) : Elu1<T>().f(x);
}
/// phi', of phi's value.
template <class T>
__device__ T slope(FeatureMap map, T y) {
  return map == FeatureMap::identity ? T(1) : map == FeatureMap::relu ? Relu<T>().df(y, y) : Elu1<T>().df(y, y);
}

/// phi of the rows of q, k, v or g. One that takes no part is zeros, and what lies there is not read.
template <class T>
struct Rows {
  HeadRows<const T> at;
  int64_t time, width;
  FeatureMap map;
  const uint8_t* mask;  // (batch, time): which rows take part, or nullptr
  const T* d;           // (batch, time, heads): rows take part where it is a normal number; or nullptr
  bool over_d;          // rows are divided by it
};

/// Head h of sample b, and how many heads a sample has.
template <class T>
struct Head {
  int64_t b, h, heads;
  T smallest;

  __device__ Head(int64_t head, int64_t all, T normal) : b(head / all), h(head % all), heads(all), smallest(normal) {}
  /// Where the one number of row t lies in (batch, time, heads).
  __device__ int64_t number(int64_t time, int64_t t) const { return (b * time + t) * heads + h; }
  template <class U>
  __device__ U* row(const HeadRows<U>& rows, int64_t t) const {
    return rows.data + b * rows.batch + t * rows.row + h * rows.head;
  }
  /// What row t is multiplied by, 0 where it takes no part.
  __device__ T weight(const Rows<T>& x, int64_t t) const {
    if (x.mask && !x.mask[b * x.time + t]) return 0;
    if (!x.d) return 1;
    const T d = x.d[number(x.time, t)];
    if (abs(d) < smallest) return 0;
    return x.over_d ? 1 / d : T(1);
  }
};

/// Rows first, first + step, ..., n of them; step is 1 or -1.
struct Chunk {
  int64_t first;
  int step;  // 32 bits: a register fewer keeps kernels from spilling
  int64_t n;
  __device__ int64_t operator()(int64_t r) const { return first + r * step; }
};

/// Numbers `first` .. first + kColumns - 1 of a chunk's rows, zeros where there are none, row by row: to[r ld + j]; or
/// column by column: to[j ld + r]. weight: of each row.
template <int kRows, int kColumns, bool kByColumn, class T>
__device__ void stage(const Rows<T>& x, const Head<T>& head, const Chunk& chunk, const T* weight, int64_t first, T* to,
                      int ld) {
  const T* const from = head.row(x.at, 0) + first;
  for (int i = threadIdx.x; i < kRows * kColumns; i += blockDim.x) {
    // By column, a warp reads four rows of eight numbers: whole sectors, and what it writes lies in different banks.
    const int r = kByColumn ? i / 8 % kRows : i / kColumns;
    const int j = kByColumn ? i / (8 * kRows) * 8 + i % 8 : i % kColumns;
    const T by = weight[r];
    T value = 0;
    if (by != 0 && first + j < x.width) value = phi(x.map, from[chunk(r) * x.at.row + j]) * by;
    to[kByColumn ? j * ld + r : r * ld + j] = value;
  }
}

/// kCount numbers that lie side by side in shared memory, on a multiple of as many bytes, at most 16.
template <int kCount, class T>
__device__ void read(const T* from, T (&to)[kCount]) {
  constexpr int kAtOnce = kCount * sizeof(T) < 16 ? kCount : 16 / sizeof(T);
  UNROLL for (int j = 0; j < kCount; j += kAtOnce) {
    const auto pack = *reinterpret_cast<const Pack<T, kAtOnce>*>(from + j);
    UNROLL for (int i = 0; i < kAtOnce; ++i) to[j + i] = pack.value[i];
  }
}
template <int kCount, class T>
__device__ void write(const T (&from)[kCount], T* to) {
  constexpr int kAtOnce = kCount * sizeof(T) < 16 ? kCount : 16 / sizeof(T);
  UNROLL for (int j = 0; j < kCount; j += kAtOnce) {
    Pack<T, kAtOnce> pack;
    UNROLL for (int i = 0; i < kAtOnce; ++i) pack.value[i] = from[j + i];
    *reinterpret_cast<Pack<T, kAtOnce>*>(to + j) = pack;
  }
}

/// sum[x][y] += sum_k a[k la + x] b[k lb + y]
template <int kX, int kY, class T>
__device__ void multiply(int n, const T* a, int la, const T* b, int lb, T (&sum)[kX][kY]) {
  for (int k = 0; k < n; ++k) {
    T left[kX], right[kY];
    read(a + k * la, left);
    read(b + k * lb, right);
    UNROLL for (int x = 0; x < kX; ++x) UNROLL for (int y = 0; y < kY; ++y) sum[x][y] += left[x] * right[y];
  }
}

/// sum[x][y] += sum_k a[x la + k] b[k lb + y], n a multiple of 4
template <int kX, int kY, class T>
__device__ void multiply_rows(int n, const T* a, int la, const T* b, int lb, T (&sum)[kX][kY]) {
  for (int k = 0; k < n; k += 4) {
    T left[kX][4];
    UNROLL for (int x = 0; x < kX; ++x) read(a + x * la + k, left[x]);
    UNROLL for (int j = 0; j < 4; ++j) {
      T right[kY];
      read(b + (k + j) * lb, right);
      UNROLL for (int x = 0; x < kX; ++x) UNROLL for (int y = 0; y < kY; ++y) sum[x][y] += left[x][j] * right[y];
    }
  }
}

}  // namespace linnet::cuda
