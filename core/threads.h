// Threads: one knob for linnet's loops and for OpenBLAS.
#pragma once
#include <cstdint>
#include <memory>

#include "linnet/core/dtype.h"

namespace linnet {

/// At least 1; the default is the number of cores (or OMP_NUM_THREADS). A forked child keeps to one thread, whatever it
/// asks for: the pool of its parent's threads is not there.
void set_num_threads(int n);
int num_threads();

/// Runs body(begin, end) over a partition of 0 .. n-1, on several threads only where the whole is worth it:
/// `nanoseconds` is the estimated cost of one item; less than about 100 microseconds in all stays on this thread.
/// Parts depend on n, cost and the number of threads alone. An exception in a body is thrown again here.
template <class Body>
void parallel_for(int64_t n, double nanoseconds, Body&& body);

/// The same for kernels of a device: a GPU's take all of it at once, and nothing where n is 0.
template <class Body>
void parallel_for(Device device, int64_t n, double nanoseconds, Body&& body);

namespace detail {
void parallel_for(int64_t n, double nanoseconds, void (*call)(void*, int64_t, int64_t), void* body);
}

template <class Body>
void parallel_for(int64_t n, double nanoseconds, Body&& body) {
  auto call = [](void* b, int64_t begin, int64_t end) {
    (*static_cast<std::remove_reference_t<Body>*>(b))(begin, end);
  };
  detail::parallel_for(n, nanoseconds, call, const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

template <class Body>
void parallel_for(Device device, int64_t n, double nanoseconds, Body&& body) {
  if (device == Device::cpu) return parallel_for(n, nanoseconds, body);
  if (n > 0) body(int64_t{0}, n);
}

}  // namespace linnet
