// Probes of the processor: loops that do nothing but what they are named for, one set per instruction-set level.
#pragma once
#include <cstdint>

#define BENCH_PROBES(level)                                 \
  namespace bench::level {                                  \
  extern const int kFlopsPerRound;                          \
  float fma_loop(int64_t rounds, float factor, float term); \
  float read_loop(const float* from, int64_t count);        \
  }
BENCH_PROBES(portable)
BENCH_PROBES(avx2)
BENCH_PROBES(avx512)
