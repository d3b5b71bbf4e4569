// What linnet's .cu files launch kernels with: the stream, its cuBLAS handle, and errors as exceptions.
// Private to .cu files.
#pragma once
#include <cstdint>
#include <utility>

#include "linnet/core/cuda.h"
#include "linnet/core/tensor.h"

namespace linnet::cuda {

cudaStream_t stream();  ///< all of linnet's work goes here, in order
cublasHandle_t blas();  ///< of this stream; f32 stays f32 (no TF32)
void check(cudaError_t error, const char* what);
void check(cublasStatus_t status, const char* what);

/// A kernel on linnet's stream; nothing for an empty grid.
template <class Kernel, class... Arguments>
void run(Kernel* kernel, dim3 grid, dim3 block, size_t shared_bytes, Arguments&&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  launch(kernel, grid, block, shared_bytes, stream(), std::forward<Arguments>(arguments)...);
  check(cudaGetLastError(), "launch");
}

/// Lets a kernel have more than 48 KiB of dynamic shared memory; once a kernel is enough.
template <class Kernel>
void allow_shared(Kernel* kernel, size_t bytes) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), "shared");
}

constexpr int kThreads = 256;  // a block, where nothing else is wanted
constexpr unsigned kMostBlocks = 4096;

/// Blocks for n items, `each` a block: no more than keep any GPU busy, so kernels go on in strides of the grid.
inline unsigned blocks_for(int64_t n, int64_t each = kThreads) {
  const int64_t blocks = (n + each - 1) / each;
  return static_cast<unsigned>(blocks < int64_t{kMostBlocks} ? blocks : int64_t{kMostBlocks});
}

/// Threads of a block for n items: whole warps, no more than there is work for.
inline unsigned threads_for(int64_t n) { return n >= kThreads ? kThreads : static_cast<unsigned>((n + 31) / 32 * 32); }

template <class F>
__global__ void __launch_bounds__(kThreads) each_kernel(int64_t n, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}

/// f(i) for 0 <= i < n, each on a thread of its own: each(n, [=] __device__(int64_t i) { y[i] = x[i]; });
template <class F>
void each(int64_t n, F f) {
  run(each_kernel<F>, blocks_for(n), threads_for(n), 0, n, f);
}

/// Memory for a launch, given back when it goes out of scope: what comes later on the stream may have it then.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : all_(Tensor::empty({n * static_cast<int64_t>(sizeof(T))}, Dtype::u8, Device::cuda)) {}
  T* data() { return static_cast<T*>(all_.mutable_raw()); }

 private:
  Tensor all_;
};

/// `n` numbers from the device, once all that was asked for is done.
void fetch_bytes(const void* from, int64_t bytes, void* to);
template <class T>
void fetch(const T* from, int64_t n, T* to) {
  fetch_bytes(from, n * static_cast<int64_t>(sizeof(T)), to);
}
template <class T>
T fetch(const T* from) {
  T value;
  fetch(from, 1, &value);
  return value;
}

}  // namespace linnet::cuda
