// An array in device memory, for tests.
#pragma once
#include <vector>

#include "linnet/core/cuda.h"

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) { cudaMalloc(&data_, size * sizeof(T)); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> values(cudaStream_t stream = nullptr) const {
    std::vector<T> all(size_);
    cudaMemcpyAsync(all.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return all;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};
