#include "linnet/core/caching_allocator.h"

#include <algorithm>
#include <bit>

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

}  // namespace

int64_t CachingAllocator::block_size(int64_t bytes) const {
  return source_.rounds ? size_class(bytes) : std::max<int64_t>(1, bytes);
}

void* CachingAllocator::allocate(int64_t bytes) {
  LINNET_CHECK(bytes <= kMost, "storage: no memory for ", bytes, " bytes on ", source_.device);
  const int64_t size = block_size(bytes);
  std::lock_guard lock(mutex_);
  void* block = nullptr;
  if (auto found = cached_.find(size); found != cached_.end() && !found->second.empty()) {
    block = found->second.back();
    found->second.pop_back();
  } else {
    block = take(size);
    if (!block) {
      release();
      block = take(size);
    }
    LINNET_CHECK(block, "storage: no memory for ", bytes, " bytes on ", source_.device, " (", stats_.live, " in use)");
    stats_.reserved += size;
  }
  stats_.requested += bytes;
  stats_.live += bytes;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return block;
}

void CachingAllocator::deallocate(void* block, int64_t bytes) noexcept {
  const int64_t size = block_size(bytes);
  std::lock_guard lock(mutex_);
  stats_.live -= bytes;
  try {
    if (source_.rounds) return cached_[size].push_back(block);
  } catch (...) {
    if (source_.in_slab(size)) return;  // lost, as there is no memory to remember it
  }
  stats_.reserved -= size;
  source_.give(block);
}

MemoryStats CachingAllocator::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}
void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak = stats_.live;
}
void CachingAllocator::empty() {
  std::lock_guard lock(mutex_);
  release();
}

void* CachingAllocator::take(int64_t bytes) {
  if (!source_.rounds || !source_.in_slab(bytes)) return source_.take(bytes);
  if (slab_left_ < bytes) {
    void* slab = source_.take(source_.slab);
    if (!slab) return nullptr;
    slab_ = static_cast<std::byte*>(slab);
    slab_left_ = source_.slab;
  }
  void* block = slab_;
  slab_ += bytes;
  slab_left_ -= bytes;
  return block;
}

void CachingAllocator::release() {
  for (auto& [size, blocks] : cached_) {
    if (source_.in_slab(size)) continue;
    for (void* block : blocks) source_.give(block);
    stats_.reserved -= size * static_cast<int64_t>(blocks.size());
    blocks.clear();
  }
}

}  // namespace linnet
