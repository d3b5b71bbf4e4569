// What the threads of a warp, and of a block, make together. Private to .cu files.
#pragma once
#include "linnet/core/cuda_stream.h"

namespace linnet::cuda {

constexpr int kWarp = 32;
constexpr unsigned kWholeWarp = 0xffffffffu;

struct Sum {
  template <class T>
  LINNET_FN T operator()(T a, T b) const {
    return a + b;
  }
};
/// The larger, or NaN.
struct Larger {
  template <class T>
  LINNET_FN T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
/// The larger, NaN passed over.
struct LargerNumber {
  template <class T>
  LINNET_FN T operator()(T a, T b) const {
    return b > a || a != a ? b : a;
  }
};
struct Smaller {
  template <class T>
  LINNET_FN T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

/// f over the values of a warp's 32 threads, for each of them, in an order that does not depend on anything.
template <class F, class T>
__device__ T over_warp(T value, F f) {
  UNROLL for (int by = kWarp / 2; by > 0; by /= 2) value = f(value, __shfl_xor_sync(kWholeWarp, value, by));
  return value;
}

/// f over the values of a block of at most 1,024 threads, whole warps, for each of them. Barriers before and after: it
/// can be called again at once.
template <class F, class T>
__device__ T over_block(T value, F f) {
  CUDA_SHARED(T, of_warp, [kWarp]);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  value = over_warp(value, f);
  __syncthreads();
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  T all = of_warp[0];
  for (int w = 1; w < warps; ++w) all = f(all, of_warp[w]);
  return all;
}

/// The sum of the values of the block's threads before this one, and of all. Barriers as over_block has them.
template <class T>
__device__ T sum_before(T value, T* all) {
  CUDA_SHARED(T, of_warp, [kWarp]);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
  T upto = value;  // this one, too
  UNROLL for (int by = 1; by < kWarp; by *= 2) {
    const T lower = __shfl_up_sync(kWholeWarp, upto, by);
    if (lane >= by) upto += lower;
  }
  __syncthreads();
  if (lane == kWarp - 1) of_warp[warp] = upto;
  __syncthreads();
  T before = T(0);
  *all = T(0);
  for (int w = 0; w < warps; ++w) {
    if (w == warp) before = *all;
    *all += of_warp[w];
  }
  const T lower = __shfl_up_sync(kWholeWarp, upto, 1);  // not upto - value: NaN where value is infinite
  return lane == 0 ? before : before + lower;
}

}  // namespace linnet::cuda
