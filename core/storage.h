// Storage: a block of memory on a device, from the caching allocator, with a version that every write raises.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "linnet/core/dtype.h"

namespace linnet {

/// Memory handed out, in bytes as requested (before rounding to a size class) unless said otherwise.
struct MemoryStats {
  int64_t live = 0;       ///< alive now
  int64_t peak = 0;       ///< the most that was alive since the last reset_peak
  int64_t requested = 0;  ///< the sum of all requests so far
  int64_t reserved = 0;   ///< taken from the system, cached blocks and rounding included
};

MemoryStats memory_stats(Device device = Device::cpu);
void reset_peak(Device device = Device::cpu);  ///< peak = live
void empty_cache(
    Device device = Device::cpu);  ///< gives cached blocks below 64 KiB and from 2 MiB on back to the system

/// Owns `bytes` bytes, 64-byte aligned. Contents are not initialised.
class Storage {
 public:
  Storage(int64_t bytes, Device device);  ///< throws Error where the system has no memory left
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const void* data() const { return data_; }
  void* mutable_data() {
    version_.fetch_add(1, std::memory_order_relaxed);
    return data_;
  }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  uint64_t version() const { return version_.load(std::memory_order_relaxed); }

 private:
  void* data_;
  int64_t bytes_;
  Device device_;
  std::atomic<uint64_t> version_ = 0;
};

}  // namespace linnet
