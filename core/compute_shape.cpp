// Moving elements: permute, concat, slice, rows of a table.
#include <algorithm>
#include <cstring>

#include "linnet/core/compute.h"
#include "linnet/core/cuda_device.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"

namespace linnet::compute {
namespace {

/// Calls f with a type of the dtype's size, to move elements with: i32 travels as f32.
template <class F>
void with_movable(const Tensor& x, F&& f) {
  if (x.dtype() == Dtype::f64) return f.template operator()<double>();
  f.template operator()<float>();
}

/// A copy of `rows` runs of `bytes` bytes each.
void copy_runs(Device device, char* to, int64_t to_step, const char* from, int64_t from_step, int64_t rows,
               int64_t bytes) {
  if (bytes == 0) return;
  if (device == Device::cuda) return cuda_device().copy_rows(to, to_step, from, from_step, rows, bytes);
  parallel_for(rows, 10 + 0.1 * static_cast<double>(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(bytes));
  });
}

/// Fills y, element by element, from the elements of x that the loop names.
void copy_strided(const PermuteLoop& loop, const Tensor& x, Tensor& y) {
  if (y.numel() == 0) return;
  if (x.dtype() == Dtype::u8) {  // masks are small: through i32
    Tensor wide = Tensor::empty(y.shape(), Dtype::i32, x.device());
    copy_strided(loop, x.to(Dtype::i32), wide);
    return y.copy_from(wide.to(Dtype::u8));
  }
  with_movable(x, [&]<class T>() {
    auto kernel = general_kernels<T>(x.device()).permute;
    const T* in = static_cast<const T*>(x.raw());
    T* out = static_cast<T*>(y.mutable_raw());
    if (loop.rank == 0) return kernel(loop, in, out);
    int64_t row = y.numel() / loop.size[0];
    parallel_for(x.device(), loop.size[0], 1.0 * static_cast<double>(row), [&](int64_t begin, int64_t end) {
      PermuteLoop part = loop;
      part.size[0] = end - begin;
      kernel(part, in + begin * loop.stride[0], out + begin * row);
    });
  });
}

/// Adds an output axis to the loop, or makes the last one longer where it runs on.
void add_axis(PermuteLoop& loop, int64_t size, int64_t stride) {
  if (size == 1) return;
  bool merges = loop.rank && loop.stride[loop.rank - 1] == stride * size;
  int at = merges ? loop.rank - 1 : loop.rank++;
  loop.size[at] = merges ? loop.size[at] * size : size;
  loop.stride[at] = stride;
}

}  // namespace

Tensor permute(const Tensor& x, std::span<const int> order) {
  LINNET_CHECK(static_cast<int>(order.size()) == x.rank(), "permute: ", order.size(), " axes named for ", x.shape());
  int64_t step[kMaxRank];
  for (int64_t d = x.rank() - 1, s = 1; d >= 0; --d) step[d] = s, s *= x.shape()[static_cast<int>(d)];
  Shape shape;
  bool seen[kMaxRank] = {};
  PermuteLoop loop;
  for (int axis : order) {
    int a = normal_axis("permute", axis, x.rank());
    LINNET_CHECK(!seen[a], "permute: axis ", axis, " is named twice");
    seen[a] = true;
    shape.push_back(x.shape()[a]);
    add_axis(loop, x.shape()[a], step[a]);
  }
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy_strided(loop, x, y);
  return y;
}

Tensor transpose(const Tensor& x, int64_t axis_a, int64_t axis_b) {
  int order[kMaxRank];
  for (int d = 0; d < x.rank(); ++d) order[d] = d;
  std::swap(order[normal_axis("transpose", axis_a, x.rank())], order[normal_axis("transpose", axis_b, x.rank())]);
  return permute(x, std::span(order, static_cast<size_t>(x.rank())));
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
  LINNET_CHECK(broadcast_shapes("broadcast_to", x.shape(), shape) == shape, "broadcast_to: ", x.shape(),
               " does not broadcast to ", shape);
  if (x.shape() == shape) return x;
  PermuteLoop loop;
  int64_t step[kMaxRank] = {};
  for (int64_t i = 1, s = 1; i <= x.rank(); ++i) {
    int64_t size = x.shape()[static_cast<int>(x.rank() - i)];
    step[shape.rank() - i] = size == 1 ? 0 : s;
    s *= size;
  }
  for (int d = 0; d < shape.rank(); ++d) add_axis(loop, shape[d], step[d]);
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  copy_strided(loop, x, y);
  return y;
}

Tensor concat(std::span<const Tensor> parts, int64_t axis) {
  LINNET_CHECK(!parts.empty(), "concat: no tensors given");
  const Tensor& first = parts[0];
  int a = normal_axis("concat", axis, first.rank());
  Shape shape = first.shape().with(a, 0);
  for (const Tensor& part : parts) {
    check_same_device("concat", first, part);
    check_same_dtype("concat", first, part);
    LINNET_CHECK(part.rank() == first.rank() && part.shape().with(a, first.shape()[a]) == first.shape(),
                 "concat: ", part.shape(), " does not fit ", first.shape(), " along axis ", axis);
    shape.set(a, shape[a] + part.shape()[a]);
  }
  Tensor y = Tensor::empty(shape, first.dtype(), first.device());
  int64_t total = shape[a], outer = first.shape().first(a).numel();
  int64_t unit = first.shape().last(first.rank() - a - 1).numel() * size_of(first.dtype());
  char* out = static_cast<char*>(y.mutable_raw());
  for (const Tensor& part : parts) {
    int64_t run = part.shape()[a] * unit;
    copy_runs(first.device(), out, total * unit, static_cast<const char*>(part.raw()), run, outer, run);
    out += run;
  }
  return y;
}

Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  int a = normal_axis("slice", axis, x.rank());
  LINNET_CHECK(0 <= begin && begin <= end && end <= x.shape()[a], "slice: ", begin, " to ", end, " of axis ", axis,
               " of ", x.shape());
  Tensor y = Tensor::empty(x.shape().with(a, end - begin), x.dtype(), x.device());
  int64_t unit = x.shape().last(x.rank() - a - 1).numel() * size_of(x.dtype());
  copy_runs(x.device(), static_cast<char*>(y.mutable_raw()), (end - begin) * unit,
            static_cast<const char*>(x.raw()) + begin * unit, x.shape()[a] * unit, x.shape().first(a).numel(),
            (end - begin) * unit);
  return y;
}

void add_slice_inplace(Tensor& y, int64_t axis, int64_t begin, const Tensor& part) {
  int a = normal_axis("add_slice", axis, y.rank());
  check_same_dtype("add_slice", y, part);
  LINNET_CHECK(part.rank() == y.rank() && part.shape().with(a, 0) == y.shape().with(a, 0) && begin >= 0 &&
                   begin + part.shape()[a] <= y.shape()[a],
               "add_slice: ", part.shape(), " at ", begin, " of axis ", axis, " of ", y.shape());
  int64_t unit = y.shape().last(y.rank() - a - 1).numel(), run = part.shape()[a] * unit;
  with_float("add_slice", y.dtype(), [&]<class T>() {
    general_kernels<T>(y.device())
        .accumulate_rows(y.shape().first(a).numel(), run, part.data<T>(), run, y.mutable_data<T>() + begin * unit,
                         y.shape()[a] * unit);
  });
}

namespace {

/// The first place whose index is not in 0 .. rows-1, or -1.
int64_t first_outside(const Tensor& index, int64_t rows) {
  const int32_t* at = index.data<int32_t>();
  if (index.device() == Device::cuda) return cuda_device().first_outside(index.numel(), at, rows);
  for (int64_t i = 0; i < index.numel(); ++i)
    if (at[i] < 0 || at[i] >= rows) return i;
  return -1;
}

}  // namespace

void check_indices(const char* op, const Tensor& index, int64_t rows) {
  LINNET_CHECK(index.dtype() == Dtype::i32, op, ": the indices are ", index.dtype(), ", i32 wanted");
  const int64_t i = first_outside(index, rows);
  if (i < 0) return;
  const int32_t at = index.reshape({-1}).slice(i, i + 1).to_vector<int32_t>()[0];
  fail(op, ": index ", at, " at position ", i, ", but there are ", rows, " rows");
}

namespace {

/// The index has been checked.
void gather(const Tensor& table, const Tensor& index, Tensor& y) {
  if (table.dtype() == Dtype::u8) {  // masks are small: through i32
    Tensor wide = Tensor::empty(y.shape(), Dtype::i32, y.device());
    gather(table.to(Dtype::i32), index, wide);
    y.copy_from(wide.to(Dtype::u8));
    return;
  }
  const int64_t width = table.shape().last(table.rank() - 1).numel();
  with_movable(table, [&]<class T>() {
    auto kernel = general_kernels<T>(table.device()).gather_rows;
    const T* from = static_cast<const T*>(table.raw());
    T* out = static_cast<T*>(y.mutable_raw());
    parallel_for(table.device(), index.numel(), 5 + 0.3 * static_cast<double>(width), [&](int64_t begin, int64_t end) {
      kernel(end - begin, width, index.data<int32_t>() + begin, from, out + begin * width);
    });
  });
}

}  // namespace

Tensor gather_rows(const char* op, const Tensor& table, const Tensor& index) {
  LINNET_CHECK(table.rank() >= 1, op, ": the table is a scalar, rows wanted");
  check_same_device(op, table, index);
  LINNET_CHECK(index.rank() + table.rank() - 1 <= kMaxRank, op, ": index ", index.shape(), " into rows of ",
               table.shape(), " given, together more than ", kMaxRank, " axes");
  check_indices(op, index, table.shape()[0]);
  Shape shape = index.shape();
  for (int d = 1; d < table.rank(); ++d) shape.push_back(table.shape()[d]);
  Tensor y = Tensor::empty(shape, table.dtype(), table.device());
  gather(table, index, y);
  return y;
}

void gather_rows_into(const char* op, const Tensor& table, const Tensor& index, Tensor& y) {
  check_same_device(op, table, index);
  check_same_device(op, table, y);
  check_same_dtype(op, table, y);
  check_indices(op, index, table.size(0));
  const int64_t width = table.shape().last(table.rank() - 1).numel();
  LINNET_CHECK(y.numel() == index.numel() * width, op, ": output ", y.shape(), " given for rows ", index.shape(),
               " of ", table.shape());
  gather(table, index, y);
}

void scatter_add_rows_inplace(Tensor& table, const Tensor& index, const Tensor& rows) {
  check_same_dtype("scatter_add_rows", table, rows);
  int64_t width = table.shape().last(table.rank() - 1).numel();
  with_float("scatter_add_rows", table.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(table.device()).scatter_add_rows;
    T* out = table.mutable_data<T>();
    double each =
        0.5 * static_cast<double>(index.numel() * width) / static_cast<double>(std::max<int64_t>(1, table.shape()[0]));
    parallel_for(table.device(), table.shape()[0], each,
                 [&](int64_t begin, int64_t end) {  // threads own rows: no two add to one
                   kernel(index.numel(), width, index.data<int32_t>(), rows.data<T>(), out, begin, end);
                 });
  });
}

}  // namespace linnet::compute
