// layer_norm on a GPU: a team of threads a row; dweight and dbias from sums over segments of rows, added up after.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/kernels.h"
#include "linnet/core/math.h"
#include "linnet/ops/layer_norm_kernels.h"
#include "linnet/ops/row_teams.h"

namespace linnet::cuda {
namespace {

// Never fused with an addition: h - mean(h) is 0 in a row of one element.
__device__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ double product(double a, double b) { return __dmul_rn(a, b); }

template <class T>
void forward(int64_t rows, int64_t width, const T* x0, const T* weight, const T* bias, T eps, T* y0, T* stats) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T* const x = x0 + row * width;
    const T n = static_cast<T>(width);
    const T mean = sum_of<T>(team, width, [x](int64_t i) { return x[i]; }) / n;
    const T rest = sum_of<T>(team, width, [x, mean](int64_t i) { return x[i] - mean; }) / n;
    const auto square = [x, mean, rest](int64_t i) {
      const T d = (x[i] - mean) - rest;
      return d * d;
    };
    const T total = sum_of<T>(team, width, square) / n + eps, rstd = total == T(0) ? T(0) : T(1) / sqrt(total);
    for (int64_t i = team.place; i < width; i += team.size) {
      const T xhat = ((x[i] - mean) - rest) * rstd;
      y0[row * width + i] = xhat * (weight ? weight[i] : T(1)) + (bias ? bias[i] : T(0));
    }
    if (stats && team.place == 0) stats[3 * row] = mean, stats[3 * row + 1] = rest, stats[3 * row + 2] = rstd;
  });
}

template <class T>
void input_gradient(int64_t rows, int64_t width, const T* dy0, const T* x0, const T* weight, const T* stats, T* dx0) {
  each_row(rows, width, [=] __device__(auto team, int64_t row) {
    const T *const dy = dy0 + row * width, *const x = x0 + row * width;
    const T mean = stats[3 * row], rest = stats[3 * row + 1], rstd = stats[3 * row + 2];
    const auto h = [=](int64_t i) { return weight ? product(weight[i], dy[i]) : dy[i]; };
    const auto xhat = [=](int64_t i) { return ((x[i] - mean) - rest) * rstd; };
    const T mean_h = sum_of<T>(team, width, h) / static_cast<T>(width);
    const T mean_hx = sum_of<T>(team, width, [=](int64_t i) { return h(i) * xhat(i); }) / static_cast<T>(width);
    for (int64_t i = team.place; i < width; i += team.size)
      dx0[row * width + i] = rstd * ((h(i) - mean_h) - xhat(i) * mean_hx);
  });
}

constexpr int kTile = 32, kTileRows = kThreads / kTile;  // columns of a block, and threads that share a column
constexpr int64_t kMostSegments = 128;

/// dweight and dbias (segments, width), each over `each` rows; either may be null. A block a tile.
template <class T>
__global__ void __launch_bounds__(kThreads) column_kernel(int64_t rows, int64_t width, int64_t each, const T* dy,
                                                          const T* x, const T* stats, T* dweight, T* dbias) {
  CUDA_SHARED(T, sums, [2][kTileRows][kTile + 1]);
  const int64_t tiles = (width + kTile - 1) / kTile;
  const int tx = threadIdx.x % kTile, ty = threadIdx.x / kTile;
  const int64_t column = blockIdx.x % tiles * kTile + tx, segment = blockIdx.x / tiles;
  const int64_t end = (segment + 1) * each < rows ? (segment + 1) * each : rows;
  T of_weight = T(0), of_bias = T(0);
  for (int64_t row = segment * each + ty; row < end && column < width; row += kTileRows) {
    const T d = dy[row * width + column];
    if (dweight)
      of_weight += d * (((x[row * width + column] - stats[3 * row]) - stats[3 * row + 1]) * stats[3 * row + 2]);
    of_bias += d;
  }
  sums[0][ty][tx] = of_weight, sums[1][ty][tx] = of_bias;
  __syncthreads();
  T* const to = ty == 0 ? dweight : dbias;
  if (ty > 1 || column >= width || !to) return;
  T sum = T(0);
  for (int r = 0; r < kTileRows; ++r) sum += sums[ty][r][tx];
  to[segment * width + column] = sum;
}

template <class T>
void backward(int64_t rows, int64_t width, const T* dy, const T* x, const T* weight, const T* stats, T* dx, T* dweight,
              T* dbias) {
  if (dx) input_gradient(rows, width, dy, x, weight, stats, dx);
  if (!dweight && !dbias) return;
  const int64_t most = (rows + kMostSegments - 1) / kMostSegments, each = most < 64 ? 64 : most;
  const int64_t segments = (rows + each - 1) / each, tiles = (width + kTile - 1) / kTile;
  Scratch<T> partial(2 * segments * width);
  T *const of_weight = dweight ? partial.data() : nullptr, *const of_bias = partial.data() + segments * width;
  run(column_kernel<T>, static_cast<unsigned>(tiles * segments), kThreads, 0, rows, width, each, dy, x, stats,
      of_weight, dbias ? of_bias : nullptr);
  const auto sum = general_kernels<T>(Device::cuda).sum;
  if (dweight) sum(1, segments, width, of_weight, dweight);
  if (dbias) sum(1, segments, width, of_bias, dbias);
}

}  // namespace

extern const LayerNormF32 layer_norm_f32 = {forward<float>, backward<float>};
extern const LayerNormF64 layer_norm_f64 = {forward<double>, backward<double>};

}  // namespace linnet::cuda
