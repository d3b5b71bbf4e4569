// What the address and the thread sanitizer have to be told about fibers; without them, nothing.
#pragma once
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ADDRESS 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#define CUDA_ON_CPU_THREAD 1
#include <sanitizer/tsan_interface.h>
#endif

// The emulation's own state is written by every fiber without an order that the race detector could know of: the
// functions that touch it are invisible to it.
#if defined(CUDA_ON_CPU_THREAD)
#define CUDA_ON_CPU_RAW __attribute__((no_sanitize("thread"), noinline))
#else
#define CUDA_ON_CPU_RAW
#endif

namespace cuda_on_cpu {

// The only order between CUDA threads that the race detector knows: what was done before publish(token) is seen by
// whoever calls see(token) later.
CUDA_ON_CPU_RAW inline void publish([[maybe_unused]] char* token) {
#if defined(CUDA_ON_CPU_THREAD)
  __tsan_release(token);
#endif
}
CUDA_ON_CPU_RAW inline void see([[maybe_unused]] char* token) {
#if defined(CUDA_ON_CPU_THREAD)
  __tsan_acquire(token);
#endif
}

}  // namespace cuda_on_cpu
