// Where memory comes from: the system's on the CPU, in huge pages where it is large, and a GPU's.
#include "linnet/core/storage.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string_view>

#include "linnet/core/caching_allocator.h"
#include "linnet/core/cuda_device.h"

namespace linnet {
namespace {

constexpr int64_t kAlign = 64;
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
void free_block(void* block) noexcept { std::free(block); }

/// Middling blocks, such as weights, are parts of slabs of huge pages, and stay so: they are never given back.
bool in_slab(int64_t bytes) {
#ifdef __SANITIZE_ADDRESS__  // which is to see where each block ends
  return bytes < 0;
#else
  return bytes >= (int64_t{64} << 10) && bytes < kHugePage;
#endif
}

// Never destroyed: tensors in static variables may outlive everything else.
CachingAllocator& cpu_allocator() {
  static CachingAllocator& cpu = *[] {
    const auto unlock = [] { cpu_allocator().unlock(); };
    pthread_atfork([] { cpu_allocator().lock(); }, unlock, unlock);
    return new CachingAllocator(
        {.device = Device::cpu, .take = new_block, .give = free_block, .in_slab = in_slab, .slab = 4 * kHugePage});
  }();
  return cpu;
}

/// LINNET_CACHE=off: every tensor on a GPU has memory of its own, whose ends a memory checker sees.
bool caches() {
  const char* wanted = std::getenv("LINNET_CACHE");
  return !wanted || std::string_view(wanted) != "off";
}

CachingAllocator& cuda_allocator() {
  const CudaDevice& device = cuda_device();
  static CachingAllocator& gpu = *new CachingAllocator({.device = Device::cuda,
                                                        .take = device.take,
                                                        .give = device.give,
                                                        .in_slab = [](int64_t bytes) { return bytes < (1 << 20); },
                                                        .slab = 4 << 20,
                                                        .rounds = caches()});
  return gpu;
}

CachingAllocator& allocator(Device device) { return device == Device::cpu ? cpu_allocator() : cuda_allocator(); }

}  // namespace

MemoryStats memory_stats(Device device) { return allocator(device).stats(); }
void reset_peak(Device device) { allocator(device).reset_peak(); }
void empty_cache(Device device) { allocator(device).empty(); }

Storage::Storage(int64_t bytes, Device device)
    : data_(allocator(device).allocate(bytes)), bytes_(bytes), device_(device) {}

Storage::~Storage() { allocator(device_).deallocate(data_, bytes_); }

}  // namespace linnet
