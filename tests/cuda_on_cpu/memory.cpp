#include "cuda_on_cpu/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cuda_on_cpu/settings.h"

namespace cuda_on_cpu {
namespace {

constexpr int kUnwritten = 0xff, kBorder = 0xa5;
// Made at the first use and never destroyed: a program's static variables may hold device memory.
std::map<const char*, size_t>& live() {
  static auto& all = *new std::map<const char*, size_t>;
  return all;
}
int open_count = 0;

#if defined(CUDA_ON_CPU_ADDRESS)

// The sanitizer's borders lie around each allocation, and while the host runs all of it is poisoned.
char* take(size_t bytes) {
  void* p = nullptr;
  if (posix_memalign(&p, 256, bytes ? bytes : 1)) return nullptr;
  std::memset(p, kUnwritten, bytes);
  if (!open_count) __asan_poison_memory_region(p, bytes);
  return static_cast<char*>(p);
}
void give(char* p, size_t bytes) {
  __asan_unpoison_memory_region(p, bytes);
  std::free(p);
}
bool border_is_whole(const char*, size_t) { return true; }
void protect(bool open) {
  for (const auto& [p, bytes] : live())
    open ? __asan_unpoison_memory_region(p, bytes) : __asan_poison_memory_region(p, bytes);
}

#else

// One region without access; each allocation is followed by a border of 256 bytes and more.
char* base = nullptr;
size_t top = 0;
std::multimap<size_t, char*>& unused() {
  static auto& all = *new std::multimap<size_t, char*>;
  return all;
}

size_t span(size_t bytes) { return (bytes + 255) / 256 * 256 + 256; }

void protect(bool open) {
  if (top) mprotect(base, (top + 4095) / 4096 * 4096, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

char* place_for(size_t bytes) {
  if (bytes >= kDeviceBytes) return nullptr;
  if (const auto found = unused().find(span(bytes)); found != unused().end()) {
    char* p = found->second;
    unused().erase(found);
    return p;
  }
  if (!base) {
    void* p = mmap(nullptr, kDeviceBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    base = static_cast<char*>(p);
  }
  if (span(bytes) > kDeviceBytes - top) return nullptr;
  top += span(bytes);
  return base + top - span(bytes);
}

char* take(size_t bytes) {
  char* p = place_for(bytes);
  if (!p) return nullptr;
  if (open_count) protect(true);  // the region has grown
  const OnDevice open;
  std::memset(p, kUnwritten, bytes);
  std::memset(p + bytes, kBorder, span(bytes) - bytes);
  return p;
}
void give(char* p, size_t bytes) { unused().emplace(span(bytes), p); }
bool border_is_whole(const char* p, size_t bytes) {
  for (size_t i = bytes; i < span(bytes); ++i)
    if (static_cast<unsigned char>(p[i]) != kBorder) {
      report(cudaErrorIllegalAddress, text("bytes behind a device allocation of ", bytes, " bytes were overwritten"));
      return false;
    }
  return true;
}

#endif

}  // namespace

OnDevice::OnDevice() {
  if (open_count++ == 0) protect(true);
}
OnDevice::~OnDevice() {
  if (--open_count == 0) protect(false);
}

void* allocate_device(size_t bytes) {
  char* p = take(bytes);
  if (p) live()[p] = bytes;
  return p;
}

bool free_device(void* p) {
  const auto found = live().find(static_cast<char*>(p));
  if (found == live().end()) {
    report(cudaErrorInvalidValue, text("cudaFree of ", p, ", which is no device allocation"));
    return false;
  }
  const size_t bytes = found->second;
  bool whole;
  {
    const OnDevice open;
    whole = border_is_whole(found->first, bytes);
  }
  live().erase(found);
  give(static_cast<char*>(p), bytes);
  return whole;
}

size_t room(const void* p) {
  auto after = live().upper_bound(static_cast<const char*>(p));
  if (after == live().begin()) return 0;
  const auto& [begin, bytes] = *--after;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(p) - begin);
  return offset < bytes ? bytes - offset : 0;
}

bool borders_are_whole() {
  const OnDevice open;
  bool whole = true;
  for (const auto& [p, bytes] : live()) whole &= border_is_whole(p, bytes);
  return whole;
}

size_t device_bytes_in_use() {
  size_t sum = 0;
  for (const auto& [p, bytes] : live()) sum += bytes;
  return sum;
}

}  // namespace cuda_on_cpu
