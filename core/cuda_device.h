// What the core asks of a CUDA device; core/cuda_device.cu fills it. Everything runs on one stream, in the order asked
// for; what gives a number to the host waits for it.
#pragma once
#include <string>

#include "linnet/core/dispatch.h"

namespace linnet {

struct CudaDevice {
  const char* (*fault)();  ///< why there is no device to work with, or null
  std::string (*name)();
  int64_t (*memory)(bool free);  ///< bytes in all, or free
  void (*synchronize)();

  void* (*take)(int64_t bytes);
  void (*give)(void* block) noexcept;
  /// A host's memory is free to change when this returns, and has what it gets.
  void (*copy)(void* to, Device to_device, const void* from, Device from_device, int64_t bytes);
  /// Rows of `bytes` bytes that lie a step apart, on the device.
  void (*copy_rows)(void* to, int64_t to_step, const void* from, int64_t from_step, int64_t rows, int64_t bytes);

  void (*fill)(Dtype dtype, int64_t n, void* y, double value);  ///< the value fits
  /// y = x in another dtype, integers cut towards zero. Returns the first place whose value does not fit, or -1.
  int64_t (*convert)(Dtype from, Dtype to, int64_t n, const void* x, void* y);
  /// The first place whose index is not in 0 .. rows-1, or -1.
  int64_t (*first_outside)(int64_t n, const int32_t* index, int64_t rows);
};

/// Throws, and says what to do, where this build has no CUDA or this machine no GPU.
const CudaDevice& cuda_device();

}  // namespace linnet
LINNET_DECLARE_CUDA(CudaDevice, device)
