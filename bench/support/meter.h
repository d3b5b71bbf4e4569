// Meter: the clock of one benchmark, with the processor's peak measured right before and right after.
#pragma once
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>

#include "bench/support/probes.h"

namespace bench {

/// Seconds that work() takes.
template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Meter {
 public:
  Meter(benchmark::State& state, int threads) : state_(state), threads_(threads), peak_(fma_peak(threads)) {}

  /// One iteration took so long, with what is not to be counted left out.
  void iteration(double seconds) {
    state_.SetIterationTime(seconds);
    seconds_ += seconds;
    fastest_ = std::min(fastest_, seconds);
    ++iterations_;
  }
  double seconds() const { return seconds_ / static_cast<double>(iterations_); }  ///< the mean iteration
  double peak() const { return peak_; }  ///< GFLOP/s, the better of before and, after finish(), after

  /// The counters gflops, peak_gflops and peak_percent, of iterations of so many operations each; best_peak_percent is
  /// that of the fastest iteration, which other work on the machine disturbs least.
  void finish(double flops) {
    peak_ = std::max(peak_, fma_peak(threads_));
    state_.counters["peak_gflops"] = peak_;
    state_.counters["gflops"] = flops / seconds() * 1e-9;
    state_.counters["peak_percent"] = percent(flops / seconds() * 1e-9, peak_);
    state_.counters["best_peak_percent"] = percent(flops / fastest_ * 1e-9, peak_);
  }

  static double percent(double part, double whole) { return 100 * part / whole; }

 private:
  benchmark::State& state_;
  int threads_;
  double peak_, seconds_ = 0, fastest_ = 1e30;
  int64_t iterations_ = 0;
};

}  // namespace bench
