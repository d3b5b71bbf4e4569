// A permuted copy on a GPU: through tiles in shared memory where rows become columns, so that both are read and written
// in runs.
#include "linnet/core/general_cuda.h"
#include "linnet/core/map.h"

namespace linnet::cuda {
namespace {

constexpr int kTile = 32, kTileRows = kThreads / kTile;

/// Matrices (columns, rows) of x become (rows, columns) of y, whose rows lie a step apart; `rest` says where each
/// begins. A block a tile.
template <class T>
__global__ void __launch_bounds__(kThreads) turn_kernel(Places<2, int64_t> rest, int64_t rows, int64_t columns,
                                                        int64_t x_step, int64_t y_step, const T* x, T* y) {
  CUDA_SHARED(T, tile, [kTile][kTile + 1]);
  const int64_t down = (rows + kTile - 1) / kTile, across = (columns + kTile - 1) / kTile;
  const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile;
  int64_t at[2];
  rest.find(blockIdx.x / (down * across), at);
  const int64_t row = blockIdx.x / across % down * kTile, column = blockIdx.x % across * kTile;
  for (int k = ty; k < kTile; k += kTileRows)
    if (column + k < columns && row + tx < rows) tile[k][tx] = x[at[0] + (column + k) * x_step + row + tx];
  __syncthreads();
  for (int k = ty; k < kTile; k += kTileRows)
    if (row + k < rows && column + tx < columns) y[at[1] + (row + k) * y_step + column + tx] = tile[tx][k];
}

/// The output axis along which the input runs on, where it is worth turning with the last; else -1.
int axis_to_turn(const PermuteLoop& loop) {
  constexpr int64_t kLeast = 8;
  const int last = loop.rank - 1;
  if (last < 1 || loop.size[last] < kLeast || loop.stride[last] <= 1) return -1;
  for (int d = 0; d < last; ++d)
    if (loop.stride[d] == 1 && loop.size[d] >= kLeast) return d;
  return -1;
}

}  // namespace

template <class T>
void permute(const PermuteLoop& loop, const T* x, T* y) {
  const int axis = axis_to_turn(loop), last = loop.rank - 1;
  if (axis < 0) return for_places<1>(loop, [=] __device__(int64_t i, const auto* at) { y[i] = x[at[0]]; });
  BroadcastLoop rest;  // the other axes: steps of x, and of y
  int64_t matrices = 1, step[8];
  step[last] = 1;
  for (int d = last - 1; d >= 0; --d) step[d] = step[d + 1] * loop.size[d + 1];
  for (int d = 0; d < last; ++d) {
    if (d == axis) continue;
    const int to = rest.rank++;
    rest.size[to] = loop.size[d];
    rest.stride[0][to] = loop.stride[d], rest.stride[1][to] = step[d];
    matrices *= loop.size[d];
  }
  const int64_t rows = loop.size[axis], columns = loop.size[last];
  const int64_t tiles = matrices * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
  run(turn_kernel<T>, static_cast<unsigned>(tiles), kThreads, 0, Places<2, int64_t>(rest), rows, columns,
      loop.stride[last], step[axis], x, y);
}

template void permute(const PermuteLoop&, const float*, float*);
template void permute(const PermuteLoop&, const double*, double*);

}  // namespace linnet::cuda
