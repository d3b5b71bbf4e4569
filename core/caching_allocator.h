// CachingAllocator: freed blocks wait in a list for their size class and serve the next request of that class.
// Private to core/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "linnet/core/storage.h"

namespace linnet {

/// Where blocks come from, and go back to.
struct BlockSource {
  Device device;
  void* (*take)(int64_t bytes);  ///< null where there is no memory left
  void (*give)(void* block) noexcept;
  bool (*in_slab)(int64_t bytes);  ///< whether blocks of this size are parts of larger ones, and never go back
  int64_t slab;                    ///< bytes of those
  bool rounds = true;              ///< false: every request is a block of its own, of exactly its size
};

class CachingAllocator {
 public:
  explicit CachingAllocator(const BlockSource& source) : source_(source) {}

  void* allocate(int64_t bytes);  ///< throws Error where the device has no memory left
  void deallocate(void* block, int64_t bytes) noexcept;
  MemoryStats stats();
  void reset_peak();
  void empty();

  // A fork waits until no thread is in here: in the child, none would be left to unlock.
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  int64_t block_size(int64_t bytes) const;
  void* take(int64_t bytes);
  void release();

  const BlockSource source_;
  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> cached_;
  std::byte* slab_ = nullptr;
  int64_t slab_left_ = 0;
  MemoryStats stats_;
};

}  // namespace linnet
