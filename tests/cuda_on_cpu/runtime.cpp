#include "cuda_on_cpu/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/settings.h"

using namespace cuda_on_cpu;

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
  }
  return "unrecognized error code";
}
cudaError_t cudaGetLastError() { return take_error(); }
cudaError_t cudaPeekAtLastError() { return first_error(); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().devices;
  return *count ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : report(cudaErrorInvalidValue, text("no device ", device));
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated on the CPU");
  properties->totalGlobalMem = kDeviceBytes;
  properties->sharedMemPerBlock = settings().shared_static;
  properties->sharedMemPerBlockOptin = settings().shared_max;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  return cudaSetDevice(device);
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = kDeviceBytes;
  *free = kDeviceBytes - device_bytes_in_use();
  return cudaSuccess;
}

// ---- memory ----

cudaError_t cudaMalloc(void** p, size_t bytes) {
  *p = bytes ? allocate_device(bytes) : nullptr;
  return *p || !bytes ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFree(void* p) {
  if (!p) return first_error();
  drain_all();
  return free_device(p) ? first_error() : cudaErrorInvalidValue;
}
cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t) { return cudaMalloc(p, bytes); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  if (p) push(stream, [p] { free_device(p); });
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** p, size_t bytes) {
  *p = std::malloc(bytes ? bytes : 1);
  return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* p) {
  drain_all();
  std::free(p);
  return cudaSuccess;
}

namespace {
// Device memory must hold the bytes, host memory must not lie on the device.
bool is_good(const void* p, size_t bytes, bool device) { return device ? room(p) >= bytes : room(p) == 0; }
}  // namespace

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (!bytes) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault && !is_good(to, bytes, to_device))
    return report(cudaErrorInvalidValue, text("cudaMemcpy of ", bytes, " bytes: bad destination ", to));
  if (kind != cudaMemcpyDefault && !is_good(from, bytes, from_device))
    return report(cudaErrorInvalidValue, text("cudaMemcpy of ", bytes, " bytes: bad source ", from));
  push(stream, [=] {
    const OnDevice open;
    std::memcpy(to, from, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_step, const void* from, size_t from_step, size_t bytes, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  if (!bytes || !rows) return cudaSuccess;
  if (to_step < bytes || from_step < bytes)
    return report(cudaErrorInvalidValue,
                  text("cudaMemcpy2D of rows of ", bytes, " bytes in steps of ", to_step, " and ", from_step));
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (!is_good(to, to_step * (rows - 1) + bytes, to_device) ||
      !is_good(from, from_step * (rows - 1) + bytes, from_device))
    return report(cudaErrorInvalidValue, text("cudaMemcpy2D of ", rows, " rows: bad memory ", to, " or ", from));
  push(stream, [=] {
    const OnDevice open;
    for (size_t i = 0; i < rows; ++i)
      std::memcpy(static_cast<char*>(to) + i * to_step, static_cast<const char*>(from) + i * from_step, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind);
  drain(*stream_of(nullptr));
  return error ? error : first_error();
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (!bytes) return cudaSuccess;
  if (!is_good(to, bytes, true))
    return report(cudaErrorInvalidValue, text("cudaMemset of ", bytes, " bytes: bad destination ", to));
  push(stream, [=] {
    const OnDevice open;
    std::memset(to, value, bytes);
  });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return cudaMemsetAsync(to, value, bytes); }

// ---- streams and events ----

namespace {
cudaError_t after_waiting() {
  borders_are_whole();
  return first_error();
}
}  // namespace

cudaError_t cudaDeviceSynchronize() {
  drain_all();
  return after_waiting();
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = new_stream(!(flags & cudaStreamNonBlocking));
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  drop_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  drain(*stream_of(stream));
  return after_waiting();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return stream_of(stream)->queue.empty() ? first_error() : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  wait(stream, *event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new Event;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  record(*event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->stream) drain(*event->stream, event->at);
  return after_waiting();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return !event->stream || event->stream->done >= event->at ? first_error() : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  if (!from->stream || !to->stream)
    return report(cudaErrorInvalidValue, "cudaEventElapsedTime of an event that was never recorded");
  if (cudaEventQuery(from) == cudaErrorNotReady || cudaEventQuery(to) == cudaErrorNotReady) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*to->time - *from->time).count();
  return cudaSuccess;
}
