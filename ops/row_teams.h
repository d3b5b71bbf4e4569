// Rows of a matrix on a GPU, each by a team of threads: one where a row is very short, a warp, or a block where it is
// long. Private to ops/*.cu.
#pragma once
#include <limits>

#include "linnet/core/warp.h"

namespace linnet::cuda {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// Who works on a row: `size` threads, of which this one has `place`; all(value, f) is f over the team's values.
struct ThreadTeam {
  static constexpr bool kIsBlock = false;
  static constexpr int size = 1, place = 0;
  template <class T, class F>
  __device__ static T all(T value, F) {
    return value;
  }
};

struct WarpTeam {
  static constexpr bool kIsBlock = false;
  static constexpr int size = kWarp;
  int place;
  __device__ WarpTeam() : place(threadIdx.x % kWarp) {}
  template <class T, class F>
  __device__ static T all(T value, F f) {
    return over_warp(value, f);
  }
};

struct BlockTeam {
  static constexpr bool kIsBlock = true;
  int size, place;
  __device__ BlockTeam() : size(blockDim.x), place(threadIdx.x) {}
  template <class T, class F>
  __device__ static T all(T value, F f) {
    return over_block(value, f);
  }
};

/// f over term(i), 0 <= i < n: each thread in steps of the team, then the threads in a tree.
template <class T, class Team, class Term, class F>
__device__ T fold(Team team, int64_t n, T start, Term term, F f) {
  T value = start;
  for (int64_t i = team.place; i < n; i += team.size) value = f(value, term(i));
  return team.all(value, f);
}
template <class T, class Team, class Term>
__device__ T sum_of(Team team, int64_t n, Term term) {
  return fold(team, n, T(0), term, Sum());
}
/// The largest of a row, -infinity for an empty one. NaN is passed over: it comes back through the sum that follows.
template <class T, class Team>
__device__ T largest_of(Team team, int64_t n, const T* x) {
  return fold(
      team, n, -kInfinity<T>, [x](int64_t i) { return x[i]; }, LargerNumber());
}

template <class Team, class F>
__global__ void __launch_bounds__(kThreads, 2) team_kernel(int64_t rows, F f) {
  const Team team;
  const int64_t in_block = Team::kIsBlock ? 1 : blockDim.x / team.size;
  const int64_t first = blockIdx.x * in_block + (Team::kIsBlock ? 0 : threadIdx.x / team.size);
  for (int64_t row = first; row < rows; row += gridDim.x * in_block) f(team, row);
}

/// f(team, row) for each row: each_row(rows, width, [=] __device__(auto team, int64_t row) { ... }).
template <class F>
void each_row(int64_t rows, int64_t width, F f) {
  if (width <= 16)
    run(team_kernel<ThreadTeam, F>, blocks_for(rows), threads_for(rows), 0, rows, f);
  else if (width <= 1024)
    run(team_kernel<WarpTeam, F>, blocks_for(rows, kThreads / kWarp), threads_for(rows * kWarp), 0, rows, f);
  else
    run(team_kernel<BlockTeam, F>, blocks_for(rows, 1), kThreads, 0, rows, f);
}

}  // namespace linnet::cuda
