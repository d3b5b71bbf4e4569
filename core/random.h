// Random numbers: Philox 4x32-10 (Salmon et al. 2011), keyed by (seed, stream, offset): the same on every device and
// for any number of threads.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "linnet/core/tensor.h"

namespace linnet {

/// Ten rounds over a counter of four words with a key of two.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// The i-th 32-bit word of the sequence (seed, stream): word i % 4 of block i / 4.
uint32_t random_word(uint64_t seed, uint64_t stream, uint64_t i);
/// A word as a number in (0, 1): open at both ends, so that its log is finite.
inline double unit_interval(uint32_t word) { return (word + 0.5) * (1.0 / 4294967296.0); }
/// A name as a stream number (FNV-1a).
uint64_t stream_of(std::string_view name);

/// A position in one sequence of random words. Copy it to remember it; save seed, stream and offset in a checkpoint.
struct Generator {
  uint64_t seed = 0, stream = 0, offset = 0;

  uint64_t take(int64_t words);  ///< reserves words, 0 or more; returns the offset of the first
  double uniform();              ///< in (0, 1)
  int64_t below(int64_t n);      ///< in 0 .. n-1, without bias; throws where n < 1
  /// These two throw, and take nothing, where a bound (or mean, or std) is not finite or does not fit the dtype.
  Tensor uniform(const Shape& shape, double low, double high, Dtype dtype = Dtype::f32,
                 Device device = default_device());
  Tensor normal(const Shape& shape, double mean, double std, Dtype dtype = Dtype::f32,
                Device device = default_device());
};

/// The default generator of this process: dropout, Tensor::uniform and Tensor::normal draw from it; initial weights use
/// its seed and their dotted name. Not for concurrent use from several threads.
Generator& default_generator();
void manual_seed(uint64_t seed);  ///< default_generator() = {seed, 0, 0}

}  // namespace linnet
