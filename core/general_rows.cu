// Rows of a table on a GPU: gathered, and added to in an order that depends on nothing.
#include "linnet/core/general_cuda.h"
#include "linnet/core/warp.h"

namespace linnet::cuda {

template <class T>
void gather_rows(int64_t n, int64_t width, const int32_t* index, const T* table, T* y) {
  each(n * width, [=] __device__(int64_t i) { y[i] = table[index[i / width] * width + i % width]; });
}

template <class T>
void scatter_add_rows(int64_t n, int64_t width, const int32_t* index, const T* y, T* table, int64_t row_begin,
                      int64_t row_end) {
  each(width, [=] __device__(int64_t j) {
    for (int64_t i = 0; i < n; ++i)
      if (index[i] >= row_begin && index[i] < row_end) table[index[i] * width + j] += y[i * width + j];
  });
}

#define LINNET_ROWS(T)                                                       \
  template void gather_rows(int64_t, int64_t, const int32_t*, const T*, T*); \
  template void scatter_add_rows(int64_t, int64_t, const int32_t*, const T*, T*, int64_t, int64_t);
LINNET_ROWS(float)
LINNET_ROWS(double)

}  // namespace linnet::cuda
