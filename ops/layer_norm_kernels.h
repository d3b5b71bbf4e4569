// The kernels of layer_norm: rows x width, each on the calling thread.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

template <class T>
struct LayerNormKernels {
  // stats (rows, 3): the mean, what its rounding left over, 1 / sqrt(variance + eps) or 0 for 1 / 0. The mean of
  // numbers that lie close together is known better than one T can say: xhat = ((x - mean) - rest) rstd. weight and
  // bias may be null; a GPU's stats, too.
  void (*forward)(int64_t rows, int64_t width, const T* x, const T* weight, const T* bias, T eps, T* y, T* stats);
  // dx, dweight and dbias (width) may be null; the latter two get the sums over these rows.
  void (*backward)(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight, const T* stats, T* dx,
                   T* dweight, T* dbias);
};

using LayerNormF32 = LayerNormKernels<float>;
using LayerNormF64 = LayerNormKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(LayerNormF32, layer_norm_f32)
LINNET_DECLARE_CUDA(LayerNormF32, layer_norm_f32)
LINNET_DECLARE_LEVELS(LayerNormF64, layer_norm_f64)
LINNET_DECLARE_CUDA(LayerNormF64, layer_norm_f64)
