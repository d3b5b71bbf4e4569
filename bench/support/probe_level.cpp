#include "bench/support/probe_kernels.h"

namespace bench::LINNET_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using Vector = float __attribute__((vector_size(kBytes)));
constexpr int kLanes = kBytes / 4;
// Two units of four cycles want eight in flight; with factor and term, fourteen of sixteen registers are in use.
constexpr int kAccumulators = 12;

float sum(const Vector (&parts)[kAccumulators]) {
  float total = 0;
  for (const Vector& part : parts)
    for (int i = 0; i < kLanes; ++i) total += part[i];
  return total;
}

}  // namespace

const int kFlopsPerRound = 2 * kAccumulators * kLanes;

// One loop over the accumulators that is not unrolled would put all of them in memory.
float fma_loop(int64_t rounds, float factor, float term) {
  const Vector x = Vector{} + factor, y = Vector{} + term;
  Vector a[kAccumulators];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) a[i] = Vector{} + static_cast<float>(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) a[i] = a[i] * x + y;
  }
  Vector result[kAccumulators];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) result[i] = a[i];
  return sum(result);
}

float read_loop(const float* from, int64_t count) {
  Vector a[kAccumulators];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) a[i] = Vector{};
  constexpr int64_t kStride = kAccumulators * kLanes;
  for (int64_t at = 0; at + kStride <= count; at += kStride) {
#pragma GCC unroll 12
    for (int i = 0; i < kAccumulators; ++i) a[i] += *reinterpret_cast<const Vector*>(from + at + i * kLanes);
  }
  Vector result[kAccumulators];
#pragma GCC unroll 12
  for (int i = 0; i < kAccumulators; ++i) result[i] = a[i];
  return sum(result);
}

}  // namespace bench::LINNET_LEVEL
