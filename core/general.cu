// The general kernels of a GPU: elementwise loops from the functors that the CPU's are made of, and the table of all.
#include "linnet/core/cuda.h"  // first: the others are then of the level cuda
#include "linnet/core/functors.h"
#include "linnet/core/general_cuda.h"
#include "linnet/core/map.h"

namespace linnet::cuda {
namespace {

template <class T, template <class> class F>
void unary(int64_t n, const T* x, T* y, T p, T q) {
  const F<T> op{{p, q}};
  map(
      n, y, [=] __device__(T value) { return op.f(value); }, x);
}

template <class T, template <class> class F, Needs needs>
void unary_slope(int64_t n, const T* x, const T* y, const T* dy, T* dx, T p, T q) {
  const F<T> op{{p, q}};
  // The functor reads one of the two, which stands for both.
  const T* const seen = needs == Needs::input ? x : needs == Needs::output ? y : dy;
  map(
      n, dx, [=] __device__(T d, T value) { return d * op.df(value, value); }, dy, seen);
}

/// y = f(a, b), and what f makes of dy where it is given. Inputs that run on, or are one number, need no places.
template <class T, class Out, class F>
void binary_loop(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, Out* y, F f) {
  const int64_t n = loop.rank ? loop.size[0] : 1;
  const bool runs_on = loop.rank == 0 || (loop.rank == 1 && loop.stride[0][0] == 1 && loop.stride[1][0] == 1);
  if (runs_on && dy) return map(n, y, f, a, b, dy);
  if (runs_on)
    return map(
        n, y, [=] __device__(T x, T z) { return f(x, z, T(1)); }, a, b);
  for_places<2>(loop, [=] __device__(int64_t i, const auto* at) { y[i] = f(a[at[0]], b[at[1]], dy ? dy[i] : T(1)); });
}

template <class T, template <class> class F>
void binary(const BroadcastLoop& loop, const T* a, const T* b, T* y) {
  binary_loop(loop, a, b, static_cast<const T*>(nullptr), y, [=] __device__(T x, T z, T) { return F<T>::f(x, z); });
}
template <class T, template <class> class F>
void binary_slope_a(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* da) {
  binary_loop(loop, a, b, dy, da, [=] __device__(T x, T z, T d) { return d * F<T>::da(x, z); });
}
template <class T, template <class> class F>
void binary_slope_b(const BroadcastLoop& loop, const T* a, const T* b, const T* dy, T* db) {
  binary_loop(loop, a, b, dy, db, [=] __device__(T x, T z, T d) { return d * F<T>::db(x, z); });
}
template <class T, template <class> class F>
void compare(const BroadcastLoop& loop, const T* a, const T* b, uint8_t* y) {
  binary_loop(loop, a, b, static_cast<const T*>(nullptr), y,
              [=] __device__(T x, T z, T) { return static_cast<uint8_t>(F<T>::f(x, z)); });
}

template <class T>
void where(const BroadcastLoop& loop, const uint8_t* mask, const T* a, const T* b, T* y) {
  for_places<3>(loop, [=] __device__(int64_t i, const auto* at) { y[i] = mask[at[0]] ? a[at[1]] : b[at[2]]; });
}

template <class T>
void accumulate(int64_t n, const T* x, T* y) {
  map(
      n, y, [=] __device__(T more, T sum) { return sum + more; }, x, static_cast<const T*>(y));
}
template <class T>
void accumulate_rows(int64_t rows, int64_t width, const T* x, int64_t x_step, T* y, int64_t y_step) {
  each(rows * width, [=] __device__(int64_t i) {
    const int64_t row = i / width, column = i - row * width;
    y[row * y_step + column] += x[row * x_step + column];
  });
}
template <class T>
void scale(int64_t n, T a, T* y) {
  map(
      n, y, [=] __device__(T value) { return a * value; }, static_cast<const T*>(y));
}

}  // namespace
}  // namespace linnet::cuda

#include "linnet/core/general_table.h"

namespace linnet::cuda {

extern const GeneralF32 general_f32 = general_table<float>(gemm<float>, gemm_batched<float>);
extern const GeneralF64 general_f64 = general_table<double>(gemm<double>, gemm_batched<double>);

}  // namespace linnet::cuda
