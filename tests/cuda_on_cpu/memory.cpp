#include "cuda_on_cpu/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
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

// One region; each allocation is followed by a border of 256 bytes and more. While the host runs the region is moved
// away, page tables and all: to take the access from it page by page takes many times as long.
constexpr size_t kGigabyte = size_t{1} << 30;
char* base = nullptr;
char* away = nullptr;
size_t top = 0;
std::multimap<size_t, char*>& unused() {
  static auto& all = *new std::multimap<size_t, char*>;
  return all;
}

/// Where p's bytes lie now.
char* always_open(const char* p) { return (open_count ? base : away) + (p - base); }
size_t span(size_t bytes) { return (bytes + 255) / 256 * 256 + 256; }

void protect(bool open) {
  if (!base) return;
  char *const from = open ? away : base, *const to = open ? base : away;
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mremap(from, kDeviceBytes, kDeviceBytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED ||
      mmap(from, kDeviceBytes, PROT_NONE, kReserve, -1, 0) == MAP_FAILED) {
    std::perror("cuda_on_cpu: device memory cannot be moved");
    std::abort();
  }
}

bool map_region() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* p = mmap(nullptr, 2 * kDeviceBytes + kGigabyte, PROT_NONE, kFlags, -1, 0);
  if (p == MAP_FAILED) return false;
  base = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(p) + kGigabyte - 1) / kGigabyte * kGigabyte);
  away = base + kDeviceBytes;
  if (mmap(open_count ? base : away, kDeviceBytes, PROT_READ | PROT_WRITE, kFlags | MAP_FIXED, -1, 0) != MAP_FAILED)
    return true;
  base = nullptr;
  return false;
}

char* place_for(size_t bytes) {
  if (bytes >= kDeviceBytes) return nullptr;
  if (const auto found = unused().find(span(bytes)); found != unused().end()) {
    char* p = found->second;
    unused().erase(found);
    return p;
  }
  if (!base && !map_region()) return nullptr;
  if (span(bytes) > kDeviceBytes - top) return nullptr;
  top += span(bytes);
  return base + top - span(bytes);
}

char* take(size_t bytes) {
  char* p = place_for(bytes);
  if (!p) return nullptr;
  std::memset(always_open(p), kUnwritten, bytes);
  std::memset(always_open(p) + bytes, kBorder, span(bytes) - bytes);
  return p;
}
void give(char* p, size_t bytes) { unused().emplace(span(bytes), p); }
bool border_is_whole(const char* p, size_t bytes) {
  const char* border = always_open(p) + bytes;  // all its bytes are alike: each is as the next
  const size_t length = span(bytes) - bytes;
  if (static_cast<unsigned char>(*border) == kBorder && !std::memcmp(border, border + 1, length - 1)) return true;
  report(cudaErrorIllegalAddress, text("bytes behind a device allocation of ", bytes, " bytes were overwritten"));
  return false;
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
  const bool whole = border_is_whole(found->first, bytes);
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
  bool whole = true;
  for (const auto& [p, bytes] : live()) whole &= border_is_whole(p, bytes);
  return whole;
}

bool is_device_address(uintptr_t address) {
#if defined(CUDA_ON_CPU_ADDRESS)
  return room(reinterpret_cast<const void*>(address)) > 0;
#else
  const char* p = reinterpret_cast<const char*>(address);
  return (p >= base && p < base + kDeviceBytes) || (p >= away && p < away + kDeviceBytes);
#endif
}

size_t device_bytes_in_use() {
  size_t sum = 0;
  for (const auto& [p, bytes] : live()) sum += bytes;
  return sum;
}

}  // namespace cuda_on_cpu
