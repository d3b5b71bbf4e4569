// Kernels with a defect each. Launched for 64 threads in one block unless said otherwise.
#pragma once
#include <string>

#include "linnet/core/cuda.h"

namespace kernels {

/// Launches the defect of this name on x and y, 64 numbers each. False if there is none.
bool launch_bad(const std::string& name, const float* x, float* y, cudaStream_t stream);

}  // namespace kernels
