// The kernels of cross_entropy: rows x classes, each on the calling thread, targets already checked.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

struct TargetCount {
  int64_t counted;    // not ignored
  int64_t first_bad;  // the place of the first that is no class, or -1
};

template <class T>
struct CrossEntropyKernels {
  // loss (rows); stats (rows, 2): the row's maximum and 1 / sum exp(x - max), so that a probability costs one exp. A
  // row whose target is `ignore` gets loss 0.
  void (*forward)(int64_t rows, int64_t classes, const T* logits, const int32_t* targets, int64_t ignore, T smoothing,
                  T* loss, T* stats);
  // dx = dloss[r * dloss_stride] factor (probability - smoothed target), 0 in ignored rows.
  void (*backward)(int64_t rows, int64_t classes, const T* logits, const int32_t* targets, int64_t ignore, T smoothing,
                   const T* stats, const T* dloss, int64_t dloss_stride, T factor, T* dx);
  // Of a GPU's targets; null on a CPU, which reads them itself.
  TargetCount (*count_targets)(int64_t rows, const int32_t* targets, int64_t classes, int64_t ignore) = nullptr;
};

using CrossEntropyF32 = CrossEntropyKernels<float>;
using CrossEntropyF64 = CrossEntropyKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(CrossEntropyF32, cross_entropy_f32)
LINNET_DECLARE_CUDA(CrossEntropyF32, cross_entropy_f32)
LINNET_DECLARE_LEVELS(CrossEntropyF64, cross_entropy_f64)
LINNET_DECLARE_CUDA(CrossEntropyF64, cross_entropy_f64)
