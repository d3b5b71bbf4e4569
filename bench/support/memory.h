// Memory of this process as the kernel counts it.
#pragma once
#include <cstdint>

namespace bench {

/// Begins a count: gives cached blocks back, and where the kernel lets us, forgets the peak so far.
class MemoryMark {
 public:
  MemoryMark();
  static int64_t peak_bytes();                                    ///< VmHWM: the most that was resident
  int64_t growth_bytes() const { return peak_bytes() - start_; }  ///< over what was resident at the mark
  int64_t tensor_bytes() const;  ///< the most that linnet's tensors held since the mark

 private:
  int64_t start_;
};

}  // namespace bench
