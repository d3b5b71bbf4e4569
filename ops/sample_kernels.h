// The kernel that draws a class a row of logits; there is one for a GPU alone.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"
#include "linnet/ops/sample.h"

namespace linnet {

template <class T>
struct SampleKernels {
  /// logits (rows, classes), u (rows) -> tokens (rows), -1 where a row has no weights.
  void (*sample)(int64_t rows, int64_t classes, const T* logits, const double* u, const SampleOptions& options,
                 int32_t* tokens);
};

using SampleF32 = SampleKernels<float>;
using SampleF64 = SampleKernels<double>;

}  // namespace linnet
LINNET_DECLARE_CUDA(SampleF32, sample_f32)
LINNET_DECLARE_CUDA(SampleF64, sample_f64)
