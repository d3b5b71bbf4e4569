#include "cuda_on_cpu/launch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "cuda_on_cpu/grid.h"

namespace cuda_on_cpu {
namespace {

std::map<const void*, size_t>& allowed() {
  static auto& all = *new std::map<const void*, size_t>;
  return all;
}

bool is_possible(dim3 grid, dim3 block) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return threads && threads <= 1024 && block.z <= 64 && grid.x && grid.y && grid.z && grid.x <= 2147483647u &&
         grid.y <= 65535 && grid.z <= 65535;
}

}  // namespace

cudaError_t allow_shared(const void* kernel, int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > settings().shared_max)
    return report(cudaErrorInvalidValue,
                  text(bytes, " bytes of dynamic shared memory are asked for, the device has ", settings().shared_max));
  allowed()[kernel] = static_cast<size_t>(bytes);
  return cudaSuccess;
}

bool is_device_argument(const void* p) {
  if (!p || room(p)) return true;
  report(cudaErrorIllegalAddress, text("a kernel's argument, ", p, ", is not in device memory"));
  return false;
}

// Small numbers are no addresses, and with the address sanitizer host and device memory are of one kind. Whether
// something lies at an address, the system's own tables tell.
bool holds_no_host_address([[maybe_unused]] const void* object, [[maybe_unused]] size_t bytes) {
#if !defined(CUDA_ON_CPU_ADDRESS)
  for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
    uintptr_t word;
    std::memcpy(&word, static_cast<const char*>(object) + at, sizeof word);
    if (word >> 32 == 0 || word >> 47 != 0 || is_device_address(word)) continue;
    unsigned char resident;
    if (mincore(reinterpret_cast<void*>(word / 4096 * 4096), 1, &resident)) continue;
    report(cudaErrorIllegalAddress, text("a kernel's argument of ", bytes, " bytes holds the address of host memory, ",
                                         reinterpret_cast<void*>(word), ", at byte ", at));
    return false;
  }
#endif
  return true;
}

void launch_grid(const void* kernel, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream,
                 std::function<bool()> arguments_are_good, std::function<void()> run_thread) {
  if (!is_possible(grid, block)) {
    report(cudaErrorInvalidConfiguration, text("launch of grid ", triple(grid), " with block ", triple(block)));
    return;
  }
  const auto found = allowed().find(kernel);
  const size_t limit = std::max(settings().shared_static, found == allowed().end() ? 0 : found->second);
  if (bytes > limit) {
    report(cudaErrorInvalidValue, text("launch with ", bytes, " bytes of dynamic shared memory, the limit is ", limit));
    return;
  }
  ++counts().launches;
  push(stream, [=, good = std::move(arguments_are_good), body = std::move(run_thread)]() mutable {
    if (!good()) return;
    const OnDevice open;
    run({grid, block, bytes, limit, [](void* f) { (*static_cast<std::function<void()>*>(f))(); }, &body});
  });
}

}  // namespace cuda_on_cpu
