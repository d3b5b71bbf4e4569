// What a kernel finds without an include: its indices, barriers, and the functions of a warp.
#pragma once
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/block.h"

#define threadIdx (cuda_on_cpu::thread_index())
#define blockIdx (cuda_on_cpu::block_index())
#define blockDim (cuda_on_cpu::block_size())
#define gridDim (cuda_on_cpu::grid_size())
inline constexpr int warpSize = 32;

#define CUDA_ON_CPU_HERE cuda_on_cpu::Place here = cuda_on_cpu::Place::current()

inline void __syncthreads(CUDA_ON_CPU_HERE) { cuda_on_cpu::meet_block(0, here); }
inline int __syncthreads_count(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::meet_block(predicate, here); }
inline int __syncthreads_or(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::meet_block(predicate, here) != 0; }
inline int __syncthreads_and(int predicate, CUDA_ON_CPU_HERE) { return cuda_on_cpu::meet_block(!predicate, here) == 0; }

inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_CPU_HERE) {
  cuda_on_cpu::meet_warp(cuda_on_cpu::WarpOp::sync, mask, 0, 32, here);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return static_cast<unsigned>(cuda_on_cpu::meet_warp(cuda_on_cpu::WarpOp::ballot, mask, predicate != 0, 32, here));
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return __ballot_sync(mask, predicate, here) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_HERE) {
  return __ballot_sync(mask, !predicate, here) == 0;
}

namespace cuda_on_cpu {

template <class T>
T shuffle(unsigned mask, T value, unsigned source, Place here) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = meet_warp(WarpOp::shuffle, mask, bits, source, here);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The lane's place in its group of `width`, and where the group begins.
struct Group {
  explicit Group(int width_)
      : width(static_cast<unsigned>(width_)), lane(cuda_on_cpu::lane()), place(lane % width), begin(lane - place) {}
  unsigned width, lane, place, begin;
};

}  // namespace cuda_on_cpu

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_ON_CPU_HERE) {
  const cuda_on_cpu::Group at(width);
  return cuda_on_cpu::shuffle(mask, value, at.begin + static_cast<unsigned>(source) % at.width, here);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDA_ON_CPU_HERE) {
  const cuda_on_cpu::Group at(width);
  const unsigned source = at.lane ^ static_cast<unsigned>(bits);
  return cuda_on_cpu::shuffle(mask, value, source < at.begin + at.width ? source : at.lane, here);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_ON_CPU_HERE) {
  const cuda_on_cpu::Group at(width);
  return cuda_on_cpu::shuffle(mask, value, at.place + by < at.width ? at.lane + by : at.lane, here);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, CUDA_ON_CPU_HERE) {
  const cuda_on_cpu::Group at(width);
  return cuda_on_cpu::shuffle(mask, value, at.place >= by ? at.lane - by : at.lane, here);
}
