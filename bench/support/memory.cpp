#include "bench/support/memory.h"

#include <fstream>
#include <string>

#include "linnet/core/storage.h"

namespace bench {
namespace {

double status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
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

double MemoryMark::tensor_bytes() const { return static_cast<double>(linnet::memory_stats().peak); }

void MemoryMark::report(benchmark::State& state) const {
  state.counters["start_bytes"] = start_;
  state.counters["peak_bytes"] = status_bytes("VmHWM:");
  state.counters["tensor_bytes"] = tensor_bytes();
}

}  // namespace bench
