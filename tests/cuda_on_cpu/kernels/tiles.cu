// Two-dimensional tiles in shared memory, and kernels of single numbers.
#include "cuda_on_cpu/kernels/kernels.h"

namespace kernels {
namespace {

constexpr int kTile = 32, kStep = 8, kSide = 16;

// A tile of 32 x 32 by 32 x 8 threads; the column more keeps the reads of a warp in different banks.
__global__ void __launch_bounds__(kTile* kStep) transpose_tile(const float* x, float* y, int rows, int columns) {
  CUDA_SHARED(float, tile, [kTile][kTile + 1]);
  const int column = blockIdx.x * kTile + threadIdx.x, row = blockIdx.y * kTile;
  for (int r = threadIdx.y; r < kTile; r += kStep)
    if (row + r < rows && column < columns) tile[r][threadIdx.x] = x[size_t(row + r) * columns + column];
  __syncthreads();
  for (int r = threadIdx.y; r < kTile; r += kStep) {
    const int to_row = blockIdx.x * kTile + r, to_column = row + threadIdx.x;
    if (to_row < columns && to_column < rows) y[size_t(to_row) * rows + to_column] = tile[threadIdx.x][r];
  }
}

__global__ void __launch_bounds__(kSide* kSide)
    matmul_tile(const float* a, const float* b, float* c, int m, int n, int k) {
  CUDA_SHARED(float, tile_a, [kSide][kSide + 1]);
  CUDA_SHARED(float, tile_b, [kSide][kSide + 1]);
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * kSide + ty, column = blockIdx.x * kSide + tx;
  float sum = 0;
  for (int begin = 0; begin < k; begin += kSide) {
    tile_a[ty][tx] = row < m && begin + tx < k ? a[size_t(row) * k + begin + tx] : 0;
    tile_b[ty][tx] = column < n && begin + ty < k ? b[size_t(begin + ty) * n + column] : 0;
    __syncthreads();
    UNROLL for (int i = 0; i < kSide; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[size_t(row) * n + column] = sum;
}

__global__ void axpy_each(float a, const float* x, float* y, size_t n) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    y[i] += a * x[i];
}

__global__ void scatter_add_rows(const int* ids, const float* dy, float* table, int columns) {
  for (int j = threadIdx.x; j < columns; j += blockDim.x)
    atomicAdd(&table[size_t(ids[blockIdx.x]) * columns + j], dy[size_t{blockIdx.x} * columns + j]);
}

int tiles(int n, int side) { return (n + side - 1) / side; }

}  // namespace

void transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  launch(transpose_tile, dim3(tiles(columns, kTile), tiles(rows, kTile)), dim3(kTile, kStep), 0, stream, x, y, rows,
         columns);
}
void matmul(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
  launch(matmul_tile, dim3(tiles(n, kSide), tiles(m, kSide)), dim3(kSide, kSide), 0, stream, a, b, c, m, n, k);
}
void axpy(float a, const float* x, float* y, size_t n, cudaStream_t stream) {
  launch(axpy_each, unsigned(n < 1024 * 128 ? (n + 127) / 128 : 1024), 128, 0, stream, a, x, y, n);
}
void scatter_add(const int* ids, const float* dy, float* table, int rows, int columns, cudaStream_t stream) {
  launch(scatter_add_rows, rows, 64, 0, stream, ids, dy, table, columns);
}

}  // namespace kernels
