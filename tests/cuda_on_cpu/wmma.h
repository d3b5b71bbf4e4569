// nvcuda::wmma for 16 x 16 x 16 tiles of bfloat16 with float sums. Lane l holds the elements 8 l to 8 l + 7 of a tile,
// row by row; no kernel may rely on that.
#pragma once
#include <type_traits>

#include "cuda_on_cpu/block.h"
#include "cuda_on_cpu/math.h"

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert(M == 16 && N == 16 && K == 16);
  static constexpr int num_elements = 8;
  T x[8];
};

template <class Fragment, class T>
void fill_fragment(Fragment& to, T value) {
  for (auto& x : to.x) x = value;
}

/// Where the lane's element i lies in a tile with rows (or columns) of `stride`.
inline unsigned place_of(unsigned lane, unsigned i, unsigned stride, bool by_rows) {
  const unsigned row = (lane * 8 + i) / 16, column = (lane * 8 + i) % 16;
  return by_rows ? row * stride + column : column * stride + row;
}

template <class Use, class T, class Layout>
void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout>& to, const T* from, unsigned stride) {
  const unsigned lane = cuda_on_cpu::lane();
  for (unsigned i = 0; i < 8; ++i) to.x[i] = from[place_of(lane, i, stride, std::is_same_v<Layout, row_major>)];
}
inline void load_matrix_sync(fragment<accumulator, 16, 16, 16, float>& to, const float* from, unsigned stride,
                             layout_t layout) {
  const unsigned lane = cuda_on_cpu::lane();
  for (unsigned i = 0; i < 8; ++i) to.x[i] = from[place_of(lane, i, stride, layout == mem_row_major)];
}
inline void store_matrix_sync(float* to, const fragment<accumulator, 16, 16, 16, float>& from, unsigned stride,
                              layout_t layout) {
  const unsigned lane = cuda_on_cpu::lane();
  for (unsigned i = 0; i < 8; ++i) to[place_of(lane, i, stride, layout == mem_row_major)] = from.x[i];
}

template <class LayoutA, class LayoutB>
CUDA_ON_CPU_RAW void mma_sync(fragment<accumulator, 16, 16, 16, float>& d,
                              const fragment<matrix_a, 16, 16, 16, __nv_bfloat16, LayoutA>& a,
                              const fragment<matrix_b, 16, 16, 16, __nv_bfloat16, LayoutB>& b,
                              const fragment<accumulator, 16, 16, 16, float>& c,
                              cuda_on_cpu::Place here = cuda_on_cpu::Place::current()) {
  struct Operands {
    const __nv_bfloat16 *a, *b;
  } mine{a.x, b.x};
  const uint64_t* given = cuda_on_cpu::exchange(reinterpret_cast<uint64_t>(&mine), here);
  const Operands* of[32];
  for (int lane = 0; lane < 32; ++lane) of[lane] = reinterpret_cast<const Operands*>(given[lane]);
  float sums[8];
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned row = (cuda_on_cpu::lane() * 8 + i) / 16, column = (cuda_on_cpu::lane() * 8 + i) % 16;
    sums[i] = c.x[i];
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned in_a = row * 16 + k, in_b = k * 16 + column;
      sums[i] += __bfloat162float(of[in_a / 8]->a[in_a % 8]) * __bfloat162float(of[in_b / 8]->b[in_b % 8]);
    }
  }
  cuda_on_cpu::exchange(0, here);  // all lanes have read these fragments
  for (unsigned i = 0; i < 8; ++i) d.x[i] = sums[i];
}

}  // namespace nvcuda::wmma
