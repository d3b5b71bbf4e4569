// Sums and maxima over a warp and over a block, the same in every thread; blockDim.x is a multiple of 32.
#pragma once
#include "linnet/core/cuda.h"

namespace kernels {

constexpr unsigned kWholeWarp = 0xffffffffu;

struct Sum {
  template <class T>
  __device__ static T identity() {
    return 0;
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return a + b;
  }
};
struct Max {
  template <class T>
  __device__ static T identity() {
    return -INFINITY;
  }
  template <class T>
  __device__ static T join(T a, T b) {
    return a < b ? b : a;
  }
};

template <class Op, class T>
__device__ T over_warp(T value) {
  for (int bits = 16; bits > 0; bits /= 2) value = Op::join(value, __shfl_xor_sync(kWholeWarp, value, bits));
  return value;
}

template <class Op, class T>
__device__ T over_block(T value) {
  CUDA_SHARED(T, of_warp, [32]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  value = over_warp<Op>(value);
  __syncthreads();  // an earlier call may still be reading of_warp
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  return over_warp<Op>(lane < warps ? of_warp[lane] : Op::template identity<T>());
}

}  // namespace kernels
