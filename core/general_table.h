// The table of the general kernels of a level or a device (core/kernels.h), from the functions of these names that its
// namespace holds; included below them.
// Private to core/.
#pragma once
#include "linnet/core/functors.h"
#include "linnet/core/kernels.h"

namespace linnet::LINNET_LEVEL {
namespace {

template <class T>
constexpr GeneralKernels<T> general_table(decltype(GeneralKernels<T>::gemm) gemm,
                                          decltype(GeneralKernels<T>::gemm_batched) gemm_batched = nullptr) {
#define LINNET_ROW(Functor, ...) unary<T, Functor>,
#define LINNET_SLOPE_ROW(Functor, name, needs) unary_slope<T, Functor, Needs::needs>,
#define LINNET_BINARY_ROW(Functor, name) binary<T, Functor>,
#define LINNET_BINARY_A_ROW(Functor, name) binary_slope_a<T, Functor>,
#define LINNET_BINARY_B_ROW(Functor, name) binary_slope_b<T, Functor>,
#define LINNET_COMPARE_ROW(Functor, name) compare<T, Functor>,
  return {{LINNET_UNARY_OPS(LINNET_ROW)},
          {LINNET_UNARY_OPS(LINNET_SLOPE_ROW)},
          {LINNET_BINARY_OPS(LINNET_BINARY_ROW)},
          {LINNET_BINARY_OPS(LINNET_BINARY_A_ROW)},
          {LINNET_BINARY_OPS(LINNET_BINARY_B_ROW)},
          {LINNET_COMPARE_OPS(LINNET_COMPARE_ROW)},
          where<T>,
          accumulate<T>,
          accumulate_rows<T>,
          scale<T>,
          permute<T>,
          sum<T>,
          max<T>,
          min<T>,
          argmax<T>,
          cumsum<T>,
          sum_of_squares<T>,
          all_finite<T>,
          gather_rows<T>,
          scatter_add_rows<T>,
          gemm,
          gemm_batched};
#undef LINNET_ROW
#undef LINNET_SLOPE_ROW
#undef LINNET_BINARY_ROW
#undef LINNET_BINARY_A_ROW
#undef LINNET_BINARY_B_ROW
#undef LINNET_COMPARE_ROW
}

}  // namespace
}  // namespace linnet::LINNET_LEVEL
