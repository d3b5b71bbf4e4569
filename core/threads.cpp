#include "linnet/core/threads.h"

#include <cblas.h>
#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>

#include "linnet/core/error.h"

extern "C" void openblas_set_num_threads(int n);

namespace linnet {
namespace {

constexpr double kWorthwhile = 100e3;  // nanoseconds: a parallel region for less is slower than one thread

std::atomic<int> threads = 0;  // 0: not asked for yet
std::atomic<bool> forked = false;

// libgomp's pool does not survive a fork, and would be waited for in vain: the child goes on with one thread.
void after_fork_in_child() {
  forked = true;
  threads = 1;
  openblas_set_num_threads(1);
}

int start(int n) {
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork_in_child);
  (void)registered;
  if (forked) n = 1;
  openblas_set_num_threads(n);
  threads = n;
  return n;
}

}  // namespace

void set_num_threads(int n) {
  LINNET_CHECK(n >= 1, "set_num_threads: ", n, " given, at least 1 wanted");
  start(n);
}

int num_threads() {
  int n = threads.load(std::memory_order_relaxed);
  return n ? n : start(std::max(1, omp_get_max_threads()));
}

namespace detail {

void parallel_for(int64_t n, double nanoseconds, void (*call)(void*, int64_t, int64_t), void* body) {
  if (n <= 0) return;
  double total = static_cast<double>(n) * nanoseconds;
  int parts = static_cast<int>(std::min<double>(
      {static_cast<double>(num_threads()), static_cast<double>(n), std::max(1.0, total / (kWorthwhile / 2))}));
  if (total < kWorthwhile || parts <= 1 || omp_in_parallel()) return call(body, 0, n);
  std::exception_ptr error;
  std::atomic<bool> failed = false;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    try {
      call(body, n * part / parts, n * (part + 1) / parts);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace detail
}  // namespace linnet
