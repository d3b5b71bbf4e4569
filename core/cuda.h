// The one file where CUDA and its emulation on the CPU differ: kernels and what launches them include this and nothing
// else of CUDA. `<<<`, a bare __shared__ and CUDA's headers stand nowhere else; a test looks.
//
//   CUDA_SHARED(float, tile, [32][33]);   shared memory of a fixed size
//   CUDA_DYNAMIC_SHARED(float, rows);     as many bytes as the launch says
//   launch(kernel, grid, block, bytes, stream, arguments...);   linnet's own files call run() of core/cuda_stream.h
//   UNROLL for (...)
//
// It also makes its file one of the level `cuda`: core/functors.h and core/math.h, included after it, give functions
// for kernels.
#pragma once
#if defined(__CUDACC__)
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

#define CUDA_SHARED(T, name, ...) __shared__ T name __VA_ARGS__
#define CUDA_DYNAMIC_SHARED(T, name)                                  \
  extern __shared__ __align__(32) unsigned char cuda_dynamic_bytes[]; \
  T* name = reinterpret_cast<T*>(cuda_dynamic_bytes)
#define UNROLL _Pragma("unroll")

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  kernel<<<grid, block, bytes, stream>>>(static_cast<Parameters>(arguments)...);
}
#elif defined(LINNET_CUDA_ON_CPU)
#include "cuda_on_cpu/atomics.h"
#include "cuda_on_cpu/cublas.h"
#include "cuda_on_cpu/intrinsics.h"
#include "cuda_on_cpu/launch.h"
#include "cuda_on_cpu/math.h"
#include "cuda_on_cpu/wmma.h"

#define UNROLL
#else
#error "CUDA kernels are compiled by nvcc, or by a C++ compiler against tests/cuda_on_cpu (LINNET_CUDA=EMULATED)"
#endif

#define LINNET_LEVEL cuda
#define LINNET_CUDA_MATH
#define LINNET_FN __host__ __device__
