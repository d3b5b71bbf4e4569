// Elementwise loops on a GPU, from functions of scalars. Private to .cu files.
#pragma once
#include "linnet/core/cuda_stream.h"
#include "linnet/core/kernels.h"

namespace linnet::cuda {

/// What one instruction loads or stores: 16 bytes of the widest type.
template <class T, int kCount>
struct __align__(kCount * sizeof(T)) Pack {
  T value[kCount];
};

template <int kCount, class Out, class F, class... In>
__device__ void map_packs(Out* y, F f, const Pack<In, kCount>&... x) {
  Pack<Out, kCount> out;
  UNROLL for (int j = 0; j < kCount; ++j) out.value[j] = f(x.value[j]...);
  *reinterpret_cast<Pack<Out, kCount>*>(y) = out;
}

template <int kCount, class Out, class F, class... In>
__global__ void __launch_bounds__(kThreads, 4) map_kernel(int64_t n, Out* y, F f, const In*... x) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x, first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t packs = n / kCount;
  for (int64_t i = first; i < packs; i += step)
    map_packs<kCount>(y + i * kCount, f, reinterpret_cast<const Pack<In, kCount>*>(x)[i]...);
  for (int64_t i = packs * kCount + first; i < n; i += step) y[i] = f(x[i]...);
}

inline bool is_aligned(const void* p, size_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

/// y[i] = f(x[i]...) over contiguous memory, in packs of 16 bytes where the pointers allow it.
template <class Out, class F, class... In>
void map(int64_t n, Out* y, F f, const In*... x) {
  constexpr int kCount = 16 / sizeof(std::common_type_t<In...>);
  const bool packed = n >= kCount && is_aligned(y, kCount * sizeof(Out)) && (is_aligned(x, kCount * sizeof(In)) && ...);
  if (packed)
    run(map_kernel<kCount, Out, F, In...>, blocks_for((n + kCount - 1) / kCount),
        threads_for((n + kCount - 1) / kCount), 0, n, y, f, x...);
  else
    run(map_kernel<1, Out, F, In...>, blocks_for(n), threads_for(n), 0, n, y, f, x...);
}

inline int64_t stride_of(const BroadcastLoop& loop, int input, int axis) { return loop.stride[input][axis]; }
inline int64_t stride_of(const PermuteLoop& loop, int, int axis) { return loop.stride[axis]; }

/// Where element i of a loop's output finds its inputs.
template <int kInputs, class Index>
struct Places {
  int rank;
  Index size[8], stride[kInputs][8];

  template <class Loop>
  explicit Places(const Loop& loop) : rank(loop.rank), size{}, stride{} {
    for (int d = 0; d < rank; ++d) {
      size[d] = static_cast<Index>(loop.size[d]);
      for (int k = 0; k < kInputs; ++k) stride[k][d] = static_cast<Index>(stride_of(loop, k, d));
    }
  }
  LINNET_FN void find(Index i, Index* at) const {
    for (int k = 0; k < kInputs; ++k) at[k] = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const Index rest = i / size[d], place = i - rest * size[d];
      for (int k = 0; k < kInputs; ++k) at[k] += place * stride[k][d];
      i = rest;
    }
  }
};

template <int kInputs, class Index, class F>
__global__ void __launch_bounds__(kThreads) place_kernel(int64_t n, Places<kInputs, Index> places, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) {
    Index at[kInputs];
    places.find(static_cast<Index>(i), at);
    f(i, at);
  }
}

/// f(i, where its kInputs inputs lie) for every element of the loop, in 32 bits where they suffice: divisions are dear.
template <int kInputs, class Loop, class F>
void for_places(const Loop& loop, F f) {
  int64_t n = 1, furthest[kInputs] = {};
  for (int d = 0; d < loop.rank; ++d) {
    n *= loop.size[d];
    for (int k = 0; k < kInputs; ++k) furthest[k] += (loop.size[d] - 1) * stride_of(loop, k, d);
  }
  bool small = n < int64_t{1} << 31;
  for (int64_t last : furthest) small = small && last < int64_t{1} << 31;
  if (small)
    run(place_kernel<kInputs, uint32_t, F>, blocks_for(n), threads_for(n), 0, n, Places<kInputs, uint32_t>(loop), f);
  else
    run(place_kernel<kInputs, int64_t, F>, blocks_for(n), threads_for(n), 0, n, Places<kInputs, int64_t>(loop), f);
}

}  // namespace linnet::cuda
