#include "linnet/ops/softmax.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "linnet/ops/softmax_kernels.h"

namespace linnet {
namespace {

constexpr FloatInstances<SoftmaxKernels> kernels = LINNET_FLOAT_INSTANCES(softmax);

constexpr double kCost = 0.8;  // nanoseconds an element

Tensor last(const Tensor& x, int axis) { return axis == x.rank() - 1 ? x : compute::transpose(x, axis, -1); }

/// Runs row(rows, width, from...) into a new tensor, the axis brought last and back.
template <class Row>
Tensor over_rows(const char* op, const Tensor& x_given, const Tensor& dy_given, int axis, Row row) {
  const Tensor x = last(x_given, axis), dy = dy_given.defined() ? last(dy_given, axis) : Tensor();
  Tensor y = empty_like(x);
  const int64_t width = x.size(-1), rows = x.shape().first(x.rank() - 1).numel();
  with_float(op, x.dtype(), [&]<class T>() {
    T* y_data = y.mutable_data<T>();
    parallel_for(x.device(), rows, kCost * static_cast<double>(width), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * width;
      row(kernels.of<T>(x.device()), end - begin, width, x.data<T>() + at, dy.defined() ? dy.data<T>() + at : nullptr,
          y_data + at);
    });
  });
  return last(y, axis);
}

int checked_axis(const char* op, const Variable& x, int64_t axis) {
  check_defined(op, x);
  LINNET_CHECK(is_float(x.dtype()), op, ": input is ", x.dtype(), ", f32 or f64 wanted");
  return normal_axis(op, axis, x.rank());
}

}  // namespace

Variable softmax(const Variable& x, int64_t axis_given) {
  const int axis = checked_axis("softmax", x, axis_given);
  Tensor y = over_rows("softmax", x.value(), {}, axis,
                       [](const auto& table, int64_t rows, int64_t width, const auto* from, const auto*, auto* to) {
                         table.softmax(rows, width, from, to);
                       });
  return record("softmax", y, {x}, keep(y), [axis](const Tensor& dy, const Tensor& y_kept) -> Gradients {
    return {over_rows("softmax", y_kept, dy, axis,
                      [](const auto& table, int64_t rows, int64_t width, const auto* from, const auto* d, auto* to) {
                        table.softmax_backward(rows, width, from, d, to);
                      })};
  });
}

Variable log_softmax(const Variable& x, int64_t axis_given) {
  const int axis = checked_axis("log_softmax", x, axis_given);
  Tensor y = over_rows("log_softmax", x.value(), {}, axis,
                       [](const auto& table, int64_t rows, int64_t width, const auto* from, const auto*, auto* to) {
                         table.log_softmax(rows, width, from, to);
                       });
  return record("log_softmax", y, {x}, keep(y), [axis](const Tensor& dy, const Tensor& y_kept) -> Gradients {
    return {over_rows("log_softmax", y_kept, dy, axis,
                      [](const auto& table, int64_t rows, int64_t width, const auto* from, const auto* d, auto* to) {
                        table.log_softmax_backward(rows, width, from, d, to);
                      })};
  });
}

}  // namespace linnet
