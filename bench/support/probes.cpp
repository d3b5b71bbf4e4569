#include "bench/support/probes.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/support/probe_kernels.h"
#include "linnet/core/dispatch.h"

namespace bench {
namespace {

struct Probes {
  int flops_per_round;
  float (*fma_loop)(int64_t, float, float);
  float (*read_loop)(const float*, int64_t);
};

Probes probes() {
#ifdef BENCH_HAS_X86_LEVELS
  if (linnet::best_level() == linnet::Level::avx512)
    return {avx512::kFlopsPerRound, avx512::fma_loop, avx512::read_loop};
  if (linnet::best_level() == linnet::Level::avx2) return {avx2::kFlopsPerRound, avx2::fma_loop, avx2::read_loop};
#endif
  return {portable::kFlopsPerRound, portable::fma_loop, portable::read_loop};
}

/// How long it took, for each of `pieces`, until the slowest of all threads had done body(thread); the shortest first.
template <class Body>
std::vector<double> seconds_of_pieces(int threads, int pieces, const Body& body) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  for (int piece = 0; piece < pieces; ++piece) {
    double slowest = 0;
#pragma omp parallel num_threads(threads) reduction(max : slowest)
    {
#pragma omp barrier
      const auto start = Clock::now();
#pragma omp for schedule(static, 1)
      for (int thread = 0; thread < threads; ++thread) body(thread);
      slowest = std::chrono::duration<double>(Clock::now() - start).count();
    }
    seconds.push_back(slowest);
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

constexpr int kPasses = 21;
volatile float sink;  // keeps the loops from being left out

}  // namespace

double fma_peak(int threads) {
  const Probes probe = probes();
  const int64_t rounds = 200'000'000 / probe.flops_per_round;
  const double seconds = seconds_of_pieces(threads, 6, [&](int) { sink = probe.fma_loop(rounds, 0.5f, 1.0f); }).front();
  return static_cast<double>(rounds * probe.flops_per_round) * threads / seconds * 1e-9;
}

ReadProbe::ReadProbe(int64_t bytes) : buffer_(linnet::Tensor::full({bytes / 4}, 1)) {}

double ReadProbe::gigabytes_per_second(int threads) const {
  const Probes probe = probes();
  const int64_t part = buffer_.numel() / threads / 64 * 64;  // vectors stay aligned
  const float* from = buffer_.data<float>();
  const double seconds = seconds_of_pieces(
      threads, kPasses, [&](int thread) { sink = probe.read_loop(from + thread * part, part); })[kPasses / 2];
  return static_cast<double>(4 * part * threads) / seconds * 1e-9;
}

}  // namespace bench
