// Reductions on a GPU. What is added up and in which order depends on the shape alone.
#include <limits>
#include <vector>

#include "linnet/core/general_cuda.h"
#include "linnet/core/warp.h"

namespace linnet::cuda {
namespace {

constexpr int64_t kSegment = 8192;  // of a row, for one block
constexpr int64_t kColumn = 256;    // of a column, for one thread

/// y[row, segment] = f over a segment of a row of n; a block each.
template <class T, class F>
__global__ void __launch_bounds__(kThreads)
    row_kernel(int64_t rows, int64_t segments, int64_t n, const T* x, T* y, T start, F f) {
  for (int64_t i = blockIdx.x; i < rows * segments; i += gridDim.x) {
    const int64_t begin = i % segments * kSegment, end = begin + kSegment < n ? begin + kSegment : n;
    const T* row = x + i / segments * n;
    T value = start;
    for (int64_t j = begin + threadIdx.x; j < end; j += blockDim.x) value = f(value, row[j]);
    value = over_block(value, f);
    if (threadIdx.x == 0) y[i] = value;
  }
}

/// The same for short rows, a warp each.
template <class T, class F>
__global__ void __launch_bounds__(kThreads) short_row_kernel(int64_t rows, int64_t n, const T* x, T* y, T start, F f) {
  const int64_t warps = int64_t{gridDim.x} * (blockDim.x / kWarp);
  for (int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp; i < rows; i += warps) {
    T value = start;
    for (int64_t j = threadIdx.x % kWarp; j < n; j += kWarp) value = f(value, x[i * n + j]);
    value = over_warp(value, f);
    if (threadIdx.x % kWarp == 0) y[i] = value;
  }
}

template <class T, class F>
void reduce_rows(int64_t rows, int64_t n, const T* x, T* y, T start, F f) {
  if (n <= 16)
    return each(rows, [=] __device__(int64_t i) {
      T value = start;
      for (int64_t j = 0; j < n; ++j) value = f(value, x[i * n + j]);
      y[i] = value;
    });
  if (n <= 1024)
    return run(short_row_kernel<T, F>, blocks_for(rows, kThreads / kWarp), kThreads, 0, rows, n, x, y, start, f);
  const int64_t segments = (n + kSegment - 1) / kSegment;
  if (segments == 1) return run(row_kernel<T, F>, blocks_for(rows, 1), kThreads, 0, rows, segments, n, x, y, start, f);
  Scratch<T> partial(rows * segments);
  run(row_kernel<T, F>, blocks_for(rows * segments, 1), kThreads, 0, rows, segments, n, x, partial.data(), start, f);
  reduce_rows(rows, segments, static_cast<const T*>(partial.data()), y, start, f);
}

/// y[o, s, j] = f over segment s of column j of x (outer, n, inner), a thread each.
template <class T, class F>
void reduce_columns(int64_t outer, int64_t n, int64_t inner, const T* x, T* y, T start, F f) {
  const int64_t segments = n <= 2 * kColumn ? 1 : (n + kColumn - 1) / kColumn;
  const int64_t length = segments == 1 ? n : kColumn;
  Scratch<T> partial(segments == 1 ? 0 : outer * segments * inner);
  T* const to = segments == 1 ? y : partial.data();
  each(outer * segments * inner, [=] __device__(int64_t i) {
    const int64_t j = i % inner, s = i / inner % segments, o = i / inner / segments;
    const int64_t begin = s * length, end = begin + length < n ? begin + length : n;
    T value = start;
    for (int64_t r = begin; r < end;) {  // sixteens, so that a long sum rounds little
      T part = start;
      for (const int64_t stop = r + 16 < end ? r + 16 : end; r < stop; ++r) part = f(part, x[(o * n + r) * inner + j]);
      value = f(value, part);
    }
    to[i] = value;
  });
  if (segments > 1) reduce_columns(outer, segments, inner, static_cast<const T*>(to), y, start, f);
}

template <class T, class F>
void reduce(int64_t outer, int64_t n, int64_t inner, const T* x, T* y, T start, F f) {
  if (outer * inner == 0) return;
  if (inner == 1)
    reduce_rows(outer, n, x, y, start, f);
  else
    reduce_columns(outer, n, inner, x, y, start, f);
}

/// y = f(x[i]) over parts of x, added up on the host in order.
template <class T, class F>
__global__ void __launch_bounds__(kThreads) total_kernel(int64_t n, const T* x, double* y, F f) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  double total = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step) total += f(x[i]);
  total = over_block(total, Sum());
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}
template <class T, class F>
double total(int64_t n, const T* x, F f) {
  const unsigned blocks = blocks_for(n, 16 * kThreads);
  if (blocks == 0) return 0;
  Scratch<double> partial(blocks);
  run(total_kernel<T, F>, blocks, kThreads, 0, n, x, partial.data(), f);
  std::vector<double> parts(blocks);
  fetch(partial.data(), blocks, parts.data());
  double all = 0;
  for (double part : parts) all += part;
  return all;
}

}  // namespace

template <class T>
void sum(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  reduce(outer, n, inner, x, y, T(0), Sum());
}
template <class T>
void max(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  reduce(outer, n, inner, x, y, -std::numeric_limits<T>::infinity(), Larger());
}
template <class T>
void min(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  reduce(outer, n, inner, x, y, std::numeric_limits<T>::infinity(), Smaller());
}

template <class T>
void argmax(int64_t outer, int64_t n, int64_t inner, const T* x, int32_t* y) {
  // A warp an output: each lane the first best of every 32nd, then the best of the lanes.
  each(outer * inner * kWarp, [=] __device__(int64_t i) {
    const int64_t at = i / kWarp;
    const T* column = x + at / inner * n * inner + at % inner;
    const auto better = [](T a, int64_t i_a, T b, int64_t i_b) {
      const bool a_nan = a != a, b_nan = b != b;
      if (a_nan || b_nan) return a_nan && (!b_nan || i_a < i_b);
      return a > b || (a == b && i_a < i_b);
    };
    int64_t best = i % kWarp < n ? i % kWarp : 0;
    T top = column[best * inner];
    for (int64_t r = best + kWarp; r < n; r += kWarp)
      if (better(column[r * inner], r, top, best)) best = r, top = column[r * inner];
    for (int by = kWarp / 2; by > 0; by /= 2) {
      const T other = __shfl_xor_sync(kWholeWarp, top, by);
      const int64_t its = __shfl_xor_sync(kWholeWarp, best, by);
      if (better(other, its, top, best)) best = its, top = other;
    }
    if (i % kWarp == 0) y[at] = static_cast<int32_t>(best);
  });
}

template <class T>
double sum_of_squares(int64_t n, const T* x) {
  return total(n, x, [=] __device__(T value) { return static_cast<double>(value) * static_cast<double>(value); });
}

template <class T>
bool all_finite(int64_t n, const T* x) {
  return total(n, x, [=] __device__(T value) { return value - value == T(0) ? 0.0 : 1.0; }) == 0;
}

#define LINNET_REDUCE(T)                                               \
  template void sum(int64_t, int64_t, int64_t, const T*, T*);          \
  template void max(int64_t, int64_t, int64_t, const T*, T*);          \
  template void min(int64_t, int64_t, int64_t, const T*, T*);          \
  template void argmax(int64_t, int64_t, int64_t, const T*, int32_t*); \
  template double sum_of_squares(int64_t, const T*);                   \
  template bool all_finite(int64_t, const T*);
LINNET_REDUCE(float)
LINNET_REDUCE(double)

}  // namespace linnet::cuda
