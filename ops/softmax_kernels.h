// The kernels of softmax and log_softmax over the last axis: rows x width, each on the calling thread.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

template <class T>
struct SoftmaxKernels {
  void (*softmax)(int64_t rows, int64_t width, const T* x, T* y);
  void (*softmax_backward)(int64_t rows, int64_t width, const T* y, const T* dy, T* dx);
  void (*log_softmax)(int64_t rows, int64_t width, const T* x, T* y);
  void (*log_softmax_backward)(int64_t rows, int64_t width, const T* y, const T* dy, T* dx);
};

using SoftmaxF32 = SoftmaxKernels<float>;
using SoftmaxF64 = SoftmaxKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(SoftmaxF32, softmax_f32)
LINNET_DECLARE_CUDA(SoftmaxF32, softmax_f32)
LINNET_DECLARE_LEVELS(SoftmaxF64, softmax_f64)
LINNET_DECLARE_CUDA(SoftmaxF64, softmax_f64)
