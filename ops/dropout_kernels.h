// The kernel of dropout, on the calling thread.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

/// A place in a sequence of random words (core/random.h).
struct DropoutWords {
  uint64_t seed, stream, first;
};

template <class T>
struct DropoutKernels {
  // y[i] = x[i] scale where word(first + i) >= threshold, else 0; for begin <= i < end.
  void (*apply)(int64_t begin, int64_t end, const DropoutWords& words, uint32_t threshold, T scale, const T* x, T* y);
};

using DropoutF32 = DropoutKernels<float>;
using DropoutF64 = DropoutKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(DropoutF32, dropout_f32)
LINNET_DECLARE_CUDA(DropoutF32, dropout_f32)
LINNET_DECLARE_LEVELS(DropoutF64, dropout_f64)
LINNET_DECLARE_CUDA(DropoutF64, dropout_f64)
