// The kernels of the feature maps that have any, over whole tensors: rows of D numbers, or of m angles.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

template <class T>
struct FeatureMapKernels {
  void (*polynomial)(int64_t rows, int64_t dim, const T* x, T* y);
  void (*polynomial_slope)(int64_t rows, int64_t dim, const T* x, const T* dy, T* dx);
  void (*fourier)(int64_t rows, int64_t m, const T* angles, T* y);
  void (*fourier_slope)(int64_t rows, int64_t m, const T* y, const T* dy, T* dangles);
};

using FeatureMapF32 = FeatureMapKernels<float>;
using FeatureMapF64 = FeatureMapKernels<double>;

}  // namespace linnet
LINNET_DECLARE_CUDA(FeatureMapF32, feature_maps_f32)
LINNET_DECLARE_CUDA(FeatureMapF64, feature_maps_f64)
