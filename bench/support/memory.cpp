#include "bench/support/memory.h"

#include <fstream>
#include <string>

#include "linnet/core/storage.h"

namespace bench {
namespace {

int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == key && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

MemoryMark::MemoryMark() {
  linnet::empty_cache();
  linnet::reset_peak();
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM = VmRSS
  start_ = status_bytes("VmRSS:");
}

int64_t MemoryMark::peak_bytes() { return status_bytes("VmHWM:"); }
int64_t MemoryMark::tensor_bytes() const { return linnet::memory_stats().peak; }

}  // namespace bench
