#include "linnet/ops/linear.h"

#include <algorithm>
#include <array>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"

namespace linnet {
namespace {

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  LINNET_CHECK(weight.rank() == 2, "linear: weight ", weight.shape(), " is not (out, in)");
  LINNET_CHECK(x.rank() >= 1, "linear: input () has no last axis; weight ", weight.shape(), " takes ", weight.size(1));
  LINNET_CHECK(x.size(-1) == weight.size(1), "linear: input ", x.shape(), " ends in ", x.size(-1), " but weight ",
               weight.shape(), " takes ", weight.size(1));
  check_same_device("linear", x, weight);
  check_same_dtype("linear", x, weight);
  if (!bias.defined()) return;
  LINNET_CHECK(bias.shape() == Shape{weight.size(0)}, "linear: bias ", bias.shape(), " but weight ", weight.shape(),
               " gives ", weight.size(0));
  check_same_device("linear", x, bias);
  check_same_dtype("linear", x, bias);
}

/// Every row of y = the bias.
template <class T>
void fill_rows(const Tensor& bias, int64_t rows, T* y) {
  const int64_t width = bias.numel();
  if (bias.device() == Device::cuda)
    return general_kernels<T>(bias.device()).permute({2, {rows, width}, {0, 1}}, bias.data<T>(), y);
  parallel_for(rows, 0.2 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::copy_n(bias.data<T>(), width, y + i * width);
  });
}

}  // namespace

void linear_into(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& y, Into into) {
  check_defined("linear", x, weight, y);
  check(x, weight, bias);
  const int64_t in = weight.size(1), out = weight.size(0), rows = x.shape().first(x.rank() - 1).numel();
  LINNET_CHECK(y.shape() == x.shape().with(-1, out), "linear: output ", y.shape(), " given, ", x.shape().with(-1, out),
               " wanted");
  check_same_device("linear", x, y);
  check_same_dtype("linear", x, y);
  with_float("linear", x.dtype(), [&]<class T>() {
    T* to = y.mutable_data<T>();
    // The product is added to rows that hold the bias: BLAS would otherwise begin by clearing them.
    if (bias.defined() && into == Into::overwrite) fill_rows<T>(bias, rows, to);
    if (bias.defined() && into == Into::add) compute::add_row_inplace(y, bias);
    const T beta = bias.defined() || into == Into::add ? T(1) : T(0);
    compute::gemm<T>(y.device(), false, true, rows, out, in, 1, x.data<T>(), std::max<int64_t>(1, in), weight.data<T>(),
                     std::max<int64_t>(1, in), beta, to, std::max<int64_t>(1, out));
  });
}

Variable linear(const Variable& xv, const Variable& weightv, const Variable& biasv) {
  check_defined("linear", xv, weightv);
  const Tensor& weight = weightv.value();
  const Tensor bias = biasv.defined() ? biasv.value() : Tensor();
  check(xv.value(), weight, bias);
  const Shape shape = xv.shape();
  const int64_t rows = shape.first(shape.rank() - 1).numel(), in = weight.size(1), out = weight.size(0);
  const Tensor x = xv.value().reshape(Shape{rows, in});

  Tensor y = Tensor::empty({rows, out}, x.dtype(), x.device());
  linear_into(x, weight, bias, y);

  const bool want_x = wants_grad(xv), want_weight = wants_grad(weightv),
             want_bias = bias.defined() && wants_grad(biasv);
  return record("linear", y.reshape(shape.with(-1, out)), {xv, weightv, biasv},
                keep(want_weight ? x : Tensor(), want_x ? weight : Tensor()),
                [=](const Tensor& dy_given, const Tensor& x_kept, const Tensor& weight_kept) -> Gradients {
                  const Tensor dy = dy_given.reshape(Shape{rows, out});
                  Tensor dx, dweight, dbias;
                  if (want_x) dx = compute::matmul(dy, weight_kept).reshape(shape);
                  if (want_weight) dweight = compute::matmul(dy, x_kept, true, false);
                  if (want_bias) dbias = compute::reduce(compute::Reduction::sum, dy, std::array<int64_t, 1>{0}, false);
                  return {dx, dweight, dbias};
                });
}

}  // namespace linnet
