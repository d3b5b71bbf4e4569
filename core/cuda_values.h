// The parts of CudaDevice (core/cuda_device.h) that are kernels. Private to core/.
#pragma once
#include "linnet/core/dtype.h"

namespace linnet::cuda {

void fill(Dtype dtype, int64_t n, void* y, double value);
int64_t convert(Dtype from, Dtype to, int64_t n, const void* x, void* y);
int64_t first_outside(int64_t n, const int32_t* index, int64_t rows);

}  // namespace linnet::cuda
