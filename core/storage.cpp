// The caching allocator: freed blocks wait in a list for their size class and serve the next request of that class.
#include "linnet/core/storage.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "linnet/core/dispatch.h"
#include "linnet/core/error.h"

namespace linnet {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMost = int64_t{1} << 60;  // far above any machine; what is rounded up from it still fits

/// Multiples of 64 up to 1 KiB, then eight classes between powers of two: at most 1/8 is lost to rounding.
int64_t size_class(int64_t bytes) {
  if (bytes <= 1024) return std::max<int64_t>(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  int64_t step = std::max<int64_t>(kAlign, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8);
  return (bytes + step - 1) / step * step;
}

constexpr int64_t kHugePage = int64_t{2} << 20;

/// From malloc; in huge pages where the system has them to give: rows far from each other cost a page's address each.
void* new_block(int64_t bytes) {
  const bool large = bytes >= kHugePage;
  void* block = nullptr;
  const auto size = static_cast<size_t>(bytes);
  if (posix_memalign(&block, static_cast<size_t>(large ? kHugePage : kAlign), size) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  if (large) madvise(block, static_cast<size_t>(bytes / kHugePage * kHugePage), MADV_HUGEPAGE);
#endif
  return block;
}

/// Middling blocks, such as weights, are parts of slabs of huge pages, and stay so: they are never given back.
constexpr int64_t kSlab = 4 * kHugePage;
bool in_slab(int64_t bytes) {
#ifdef __SANITIZE_ADDRESS__  // which is to see where each block ends
  return bytes < 0;
#else
  return bytes >= (int64_t{64} << 10) && bytes < kHugePage;
#endif
}

class CpuAllocator {
 public:
  /// Never destroyed: tensors in static variables may outlive everything else.
  static CpuAllocator& instance() {
    static CpuAllocator& cpu = *new CpuAllocator;
    return cpu;
  }

  void* allocate(int64_t bytes) {
    LINNET_CHECK(bytes <= kMost, "storage: no memory for ", bytes, " bytes on cpu");
    int64_t rounded = size_class(bytes);
    std::lock_guard lock(mutex_);
    void* block = nullptr;
    auto& waiting = cached_[rounded];
    if (!waiting.empty()) {
      block = waiting.back();
      waiting.pop_back();
    } else {
      block = take(rounded);
      if (!block) {
        release();
        block = take(rounded);
      }
      LINNET_CHECK(block, "storage: no memory for ", bytes, " bytes on cpu (", stats_.live, " in use)");
      stats_.reserved += rounded;
    }
    stats_.requested += bytes;
    stats_.live += bytes;
    stats_.peak = std::max(stats_.peak, stats_.live);
    return block;
  }

  void deallocate(void* block, int64_t bytes) noexcept {
    std::lock_guard lock(mutex_);
    stats_.live -= bytes;
    try {
      cached_[size_class(bytes)].push_back(block);
    } catch (...) {
      if (in_slab(size_class(bytes))) return;  // lost, as there is no memory to remember it
      stats_.reserved -= size_class(bytes);
      std::free(block);
    }
  }

  MemoryStats stats() {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.live;
  }
  void empty() {
    std::lock_guard lock(mutex_);
    release();
  }

 private:
  // A fork waits until no thread is in here: in the child, none would be left to unlock.
  CpuAllocator() {
    const auto unlock = [] { instance().mutex_.unlock(); };
    pthread_atfork([] { instance().mutex_.lock(); }, unlock, unlock);
  }

  void* take(int64_t bytes) {
    if (!in_slab(bytes)) return new_block(bytes);
    if (slab_left_ < bytes) {
      void* slab = new_block(kSlab);
      if (!slab) return nullptr;
      slab_ = static_cast<std::byte*>(slab);
      slab_left_ = kSlab;
    }
    void* block = slab_;
    slab_ += bytes;
    slab_left_ -= bytes;
    return block;
  }

  void release() {
    for (auto& [size, blocks] : cached_) {
      if (in_slab(size)) continue;
      for (void* block : blocks) std::free(block);
      stats_.reserved -= size * static_cast<int64_t>(blocks.size());
      blocks.clear();
    }
  }

  std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> cached_;
  std::byte* slab_ = nullptr;
  int64_t slab_left_ = 0;
  MemoryStats stats_;
};

CpuAllocator& allocator(Device device) {
  if (device != Device::cpu) throw_no_cuda();
  return CpuAllocator::instance();
}

}  // namespace

MemoryStats memory_stats(Device device) { return allocator(device).stats(); }
void reset_peak(Device device) { allocator(device).reset_peak(); }
void empty_cache(Device device) { allocator(device).empty(); }

Storage::Storage(int64_t bytes, Device device)
    : data_(allocator(device).allocate(bytes)), bytes_(bytes), device_(device) {}

Storage::~Storage() { allocator(device_).deallocate(data_, bytes_); }

}  // namespace linnet
