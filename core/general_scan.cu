// Running sums on a GPU, in an order that depends on the shape alone.
#include "linnet/core/general_cuda.h"
#include "linnet/core/warp.h"

namespace linnet::cuda {
namespace {

constexpr int kTurn = 4;        // neighbours that a thread of a row has at a time
constexpr int64_t kShort = 16;  // a row up to this length has one thread

/// Rows of n, a block each: piece by piece, with the sum of those before carried on.
template <class T>
__global__ void __launch_bounds__(kThreads) scan_kernel(int64_t rows, int64_t n, bool reverse, const T* x, T* y) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto place = [=](int64_t i) { return row * n + (reverse ? n - 1 - i : i); };
    double carry = 0;
    for (int64_t first = 0; first < n; first += blockDim.x * kTurn) {
      const int64_t begin = first + threadIdx.x * kTurn;
      double value[kTurn], own = 0, all;
      UNROLL for (int j = 0; j < kTurn; ++j) {
        value[j] = begin + j < n ? static_cast<double>(x[place(begin + j)]) : 0.0;
        own += value[j];
      }
      double total = carry + sum_before(own, &all);
      UNROLL for (int j = 0; j < kTurn; ++j) {
        total += value[j];
        if (begin + j < n) y[place(begin + j)] = static_cast<T>(total);
      }
      carry += all;
    }
  }
}

}  // namespace

template <class T>
void cumsum(int64_t outer, int64_t n, int64_t inner, bool reverse, const T* x, T* y) {
  if (inner == 1 && n > kShort)
    return run(scan_kernel<T>, blocks_for(outer, 1), threads_for((n + kTurn - 1) / kTurn), 0, outer, n, reverse, x, y);
  each(outer * inner, [=] __device__(int64_t i) {
    double total = 0;
    for (int64_t r = 0; r < n; ++r) {
      const int64_t at = (i / inner * n + (reverse ? n - 1 - r : r)) * inner + i % inner;
      total += static_cast<double>(x[at]);
      y[at] = static_cast<T>(total);
    }
  });
}

template void cumsum(int64_t, int64_t, int64_t, bool, const float*, float*);
template void cumsum(int64_t, int64_t, int64_t, bool, const double*, double*);

}  // namespace linnet::cuda
