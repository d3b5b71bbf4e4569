// Atomic operations: relaxed, as CUDA's are; after a __threadfence of the same thread they order memory.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "cuda_on_cpu/block.h"

namespace cuda_on_cpu {

CUDA_ON_CPU_RAW inline bool is_fenced() { return self->fenced; }

template <class T, class F>
T atomic_update(T* p, F f) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  static_assert(sizeof(T) == sizeof(Bits));
  Bits* bits = reinterpret_cast<Bits*>(p);
  const bool orders = is_fenced();
  Bits old = __atomic_load_n(bits, __ATOMIC_RELAXED), now;
  bool done;
  do {
    now = std::bit_cast<Bits>(f(std::bit_cast<T>(old)));
    done = orders ? __atomic_compare_exchange_n(bits, &old, now, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)
                  : __atomic_compare_exchange_n(bits, &old, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  } while (!done);
  return std::bit_cast<T>(old);
}

}  // namespace cuda_on_cpu

CUDA_ON_CPU_RAW inline void __threadfence() { cuda_on_cpu::self->fenced = true; }

template <class T>
T atomicAdd(T* p, std::type_identity_t<T> value) {
  return cuda_on_cpu::atomic_update(p, [=](T old) { return T(old + value); });
}
template <class T>
T atomicMax(T* p, std::type_identity_t<T> value) {
  return cuda_on_cpu::atomic_update(p, [=](T old) { return std::max(old, value); });
}
template <class T>
T atomicMin(T* p, std::type_identity_t<T> value) {
  return cuda_on_cpu::atomic_update(p, [=](T old) { return std::min(old, value); });
}
template <class T>
T atomicExch(T* p, std::type_identity_t<T> value) {
  return cuda_on_cpu::atomic_update(p, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* p, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return cuda_on_cpu::atomic_update(p, [=](T old) { return old == compare ? value : old; });
}
