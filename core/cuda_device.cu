// The cuda device: its stream, its memory, and copies to and from it through pinned memory.
#include "linnet/core/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "linnet/core/cuda_stream.h"
#include "linnet/core/cuda_values.h"

namespace linnet::cuda {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or the next call would find it again
  fail("cuda: ", what, ": ", cudaGetErrorString(error));
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail("cuda: ", what, ": cuBLAS status ", static_cast<int>(status));
}

namespace {

/// Made at the first use and never destroyed: tensors in static variables may outlive everything else.
struct Context {
  cudaStream_t stream = nullptr;
  cublasHandle_t blas = nullptr;

  Context() {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    check(cublasCreate(&blas), "cublasCreate");
    check(cublasSetStream(blas, stream), "cublasSetStream");
  }
};

Context& context() {
  static Context& one = *new Context;
  return one;
}

/// Pinned memory that copies go through, so that they need not wait for each other: two halves, used in turn.
struct Staging {
  static constexpr int64_t kBytes = int64_t{4} << 20;
  void* half[2];
  cudaEvent_t free[2];
  int next = 0;
  std::mutex mutex;

  Staging() {
    for (int i = 0; i < 2; ++i) {
      check(cudaMallocHost(&half[i], kBytes), "pinned memory");
      check(cudaEventCreateWithFlags(&free[i], cudaEventDisableTiming), "event");
    }
  }

  void to_device(char* to, const char* from, int64_t bytes) {
    std::lock_guard lock(mutex);
    for (int64_t at = 0; at < bytes; at += kBytes, next ^= 1) {
      const auto part = static_cast<size_t>(std::min(kBytes, bytes - at));
      check(cudaEventSynchronize(free[next]), "copy to cuda");
      std::memcpy(half[next], from + at, part);
      check(cudaMemcpyAsync(to + at, half[next], part, cudaMemcpyHostToDevice, stream()), "copy to cuda");
      check(cudaEventRecord(free[next], stream()), "copy to cuda");
    }
  }

  void to_host(char* to, const char* from, int64_t bytes) {
    std::lock_guard lock(mutex);
    for (int64_t at = 0; at < bytes; at += kBytes) {
      const auto part = static_cast<size_t>(std::min(kBytes, bytes - at));
      check(cudaMemcpyAsync(half[0], from + at, part, cudaMemcpyDeviceToHost, stream()), "copy from cuda");
      check(cudaStreamSynchronize(stream()), "copy from cuda");
      std::memcpy(to + at, half[0], part);
    }
  }
};

Staging& staging() {
  static Staging& one = *new Staging;
  return one;
}

const char* find_fault() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  // Without a driver, CUDA says that the driver's version is insufficient.
  if (error == cudaErrorInsufficientDriver) return "this machine has no GPU, or no driver or too old a one for it";
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return count > 0 ? nullptr : "this machine has no GPU";
}

const char* fault() {
  static const char* const found = find_fault();
  return found;
}

std::string device_name() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "device properties");
  return properties.name;
}

int64_t memory(bool free_only) {
  size_t unused = 0, all = 0;
  check(cudaMemGetInfo(&unused, &all), "memory");
  return static_cast<int64_t>(free_only ? unused : all);
}

void synchronize() { check(cudaStreamSynchronize(stream()), "synchronize"); }

void* take(int64_t bytes) {
  void* block = nullptr;
  if (cudaMallocAsync(&block, static_cast<size_t>(bytes), stream()) == cudaSuccess) return block;
  cudaGetLastError();
  return nullptr;
}

void give(void* block) noexcept { cudaFreeAsync(block, context().stream); }

void copy(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  if (bytes == 0) return;
  if (from_device == Device::cpu)
    return staging().to_device(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  if (to_device == Device::cpu) return staging().to_host(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream()), "copy");
}

void copy_rows(void* to, int64_t to_step, const void* from, int64_t from_step, int64_t rows, int64_t bytes) {
  if (rows == 0 || bytes == 0) return;
  if (rows == 1 || (to_step == bytes && from_step == bytes))
    return copy(to, Device::cuda, from, Device::cuda, rows * bytes);
  const auto size = [](int64_t n) { return static_cast<size_t>(n); };
  check(cudaMemcpy2DAsync(to, size(to_step), from, size(from_step), size(bytes), size(rows), cudaMemcpyDeviceToDevice,
                          stream()),
        "copy");
}

}  // namespace

void fetch_bytes(const void* from, int64_t bytes, void* to) { copy(to, Device::cpu, from, Device::cuda, bytes); }

cudaStream_t stream() { return context().stream; }
cublasHandle_t blas() { return context().blas; }

extern const CudaDevice device = {fault, device_name, memory, synchronize, take,         give,
                                  copy,  copy_rows,   fill,   convert,     first_outside};

}  // namespace linnet::cuda
