// Memory of this process as the kernel counts it.
#pragma once
#include <benchmark/benchmark.h>

namespace bench {

/// Begins a count: gives cached blocks back, and where the kernel lets us, forgets the peak so far.
class MemoryMark {
 public:
  MemoryMark();
  /// The counters start_bytes and peak_bytes, resident at the mark and at most since then, and tensor_bytes, the most
  /// that linnet's tensors held since then.
  void report(benchmark::State& state) const;
  double tensor_bytes() const;

 private:
  double start_;
};

}  // namespace bench
