// Probes: what this machine can do at best, right now, to hold a measurement against.
#pragma once
#include "linnet/core/tensor.h"

namespace bench {

/// GFLOP/s of nothing but fused multiply-adds on so many threads at once, at the machine's best level. The best of a
/// few pieces of about 2 ms: it is to be a peak.
double fma_peak(int threads);

/// GB/s of reading one buffer over and over, a part a thread: the median of 21 passes, as what is held against it is a
/// median.
class ReadProbe {
 public:
  explicit ReadProbe(int64_t bytes);
  double gigabytes_per_second(int threads) const;

 private:
  linnet::Tensor buffer_;
};

}  // namespace bench
