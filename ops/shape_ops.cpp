#include "linnet/ops/shape_ops.h"

#include <algorithm>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

namespace {

Variable reshaped(const Variable& x, Tensor y) {
  return record("reshape", std::move(y), {x}, keep(),
                [shape = x.shape()](const Tensor& dy) -> Gradients { return {dy.reshape(shape)}; });
}

constexpr int64_t kMostParts = 1 << 20;  // an empty axis would divide into any number, and none fits the memory

// The first axis costs nothing: its slices share memory.
Tensor slice_of(const Tensor& x, int axis, int64_t begin, int64_t end) {
  return axis == 0 ? x.slice(begin, end) : compute::slice(x, axis, begin, end);
}

}  // namespace

Variable reshape(const Variable& x, std::initializer_list<int64_t> sizes) {
  check_defined("reshape", x);
  return reshaped(x, x.value().reshape(sizes));
}

Variable reshape(const Variable& x, const Shape& shape) {
  check_defined("reshape", x);
  return reshaped(x, x.value().reshape(shape));
}

Variable transpose(const Variable& x, int64_t a, int64_t b) {
  check_defined("transpose", x);
  const int i = normal_axis("transpose", a, x.rank()), j = normal_axis("transpose", b, x.rank());
  return record("transpose", compute::transpose(x.value(), i, j), {x}, keep(),
                [i, j](const Tensor& dy) -> Gradients { return {compute::transpose(dy, i, j)}; });
}

Variable permute(const Variable& x, std::initializer_list<int64_t> order) {
  check_defined("permute", x);
  struct Order {
    int axes[kMaxRank];
  };
  const int rank = x.rank();
  Order forward{}, back{};
  std::fill_n(back.axes, kMaxRank, -1);
  LINNET_CHECK(static_cast<int>(order.size()) == rank, "permute: ", order.size(), " axes listed for ", x.shape(),
               ", each wanted once");
  int i = 0;
  for (int64_t axis : order) {
    const int source = normal_axis("permute", axis, rank);
    LINNET_CHECK(back.axes[source] < 0, "permute: axis ", axis, " of ", x.shape(), " is listed twice");
    forward.axes[i] = source;
    back.axes[source] = i++;
  }
  return record("permute", compute::permute(x.value(), std::span<const int>(forward.axes, rank)), {x}, keep(),
                [back, rank](const Tensor& dy) -> Gradients {
                  return {compute::permute(dy, std::span<const int>(back.axes, rank))};
                });
}

Variable slice(const Variable& x, int64_t axis, int64_t begin, std::optional<int64_t> end) {
  check_defined("slice", x);
  const int i = normal_axis("slice", axis, x.rank());
  const int64_t size = x.shape()[i];
  int64_t first = begin < 0 ? begin + size : begin;
  int64_t last = !end ? size : *end < 0 ? *end + size : *end;
  LINNET_CHECK(0 <= first && first <= last && last <= size, "slice: ", begin, " to ", end.value_or(size), " of axis ",
               i, " of ", x.shape(), ", which has size ", size);
  return record("slice", slice_of(x.value(), i, first, last), {x}, keep(),
                [i, first, shape = x.shape()](const Tensor& dy) -> Gradients {
                  Tensor dx = Tensor::zeros(shape, dy.dtype(), dy.device());
                  compute::add_slice_inplace(dx, i, first, dy);
                  return {dx};
                });
}

Variable concat(const std::vector<Variable>& parts, int64_t axis) {
  LINNET_CHECK(!parts.empty(), "concat: no parts given, at least one wanted");
  for (const Variable& part : parts) check_defined("concat", part);
  const Shape& model = parts[0].shape();
  const int at = normal_axis("concat", axis, model.rank());
  Shape whole = model.with(at, 0);
  std::vector<Tensor> values;
  std::vector<int64_t> begin = {0};
  std::vector<bool> wanted;
  for (const Variable& part : parts) {
    const Shape& shape = part.shape();
    LINNET_CHECK(shape.rank() == model.rank() && shape.with(at, model[at]) == model, "concat: ", model, " and ", shape,
                 " given, which may differ in axis ", at, " only");
    check_same_dtype("concat", parts[0].value(), part.value());
    check_same_device("concat", parts[0].value(), part.value());
    values.push_back(part.value());
    whole.set(at, whole[at] + shape[at]);
    begin.push_back(whole[at]);
    wanted.push_back(wants_grad(part));
  }
  return record_many("concat", {compute::concat(values, at)}, parts, {},
                     [at, begin, wanted](const std::vector<Tensor>& dys, std::span<const Tensor>) {
                       Gradients gradients(wanted.size());
                       for (size_t i = 0; i < wanted.size(); ++i)
                         if (wanted[i]) gradients[i] = slice_of(dys[0], at, begin[i], begin[i + 1]);
                       return gradients;
                     })[0];
}

Variable stack(const std::vector<Variable>& parts, int64_t axis) {
  LINNET_CHECK(!parts.empty(), "stack: no parts given, at least one wanted");
  for (const Variable& part : parts) check_defined("stack", part);
  const Shape& model = parts[0].shape();
  const int at = normal_axis("stack", axis, model.rank() + 1);
  LINNET_CHECK(model.rank() < kMaxRank, "stack: parts ", model, " given, at most ", kMaxRank - 1, " axes wanted");
  Shape thick = model.first(at);
  thick.push_back(1);
  for (int i = at; i < model.rank(); ++i) thick.push_back(model[i]);
  std::vector<Variable> rows;
  for (const Variable& part : parts) {
    LINNET_CHECK(part.shape() == model, "stack: ", model, " and ", part.shape(), " given, equal shapes wanted");
    rows.push_back(reshape(part, thick));
  }
  return concat(rows, at);
}

std::vector<Variable> split(const Variable& x, const std::vector<int64_t>& sizes, int64_t axis) {
  check_defined("split", x);
  const int at = normal_axis("split", axis, x.rank());
  std::vector<int64_t> begin = {0};
  for (int64_t size : sizes) {
    LINNET_CHECK(size >= 0, "split: size ", size, " is negative");
    int64_t end;
    LINNET_CHECK(!__builtin_add_overflow(begin.back(), size, &end), "split: the sizes add up to more than 2^63 - 1");
    begin.push_back(end);
  }
  LINNET_CHECK(begin.back() == x.shape()[at], "split: the sizes add up to ", begin.back(), " but axis ", at, " of ",
               x.shape(), " has size ", x.shape()[at]);
  if (sizes.empty()) return {};
  std::vector<Tensor> parts;
  for (size_t i = 0; i < sizes.size(); ++i) parts.push_back(slice_of(x.value(), at, begin[i], begin[i + 1]));
  return record_many(
      "split", parts, std::span(&x, 1), {},
      [at, begin, shape = x.shape()](const std::vector<Tensor>& dys, std::span<const Tensor>) -> Gradients {
        const Tensor& some = *std::find_if(dys.begin(), dys.end(), [](const Tensor& dy) { return dy.defined(); });
        std::vector<Tensor> whole(dys);
        for (size_t i = 0; i < whole.size(); ++i)
          if (!whole[i].defined())
            whole[i] = Tensor::zeros(shape.with(at, begin[i + 1] - begin[i]), some.dtype(), some.device());
        return {compute::concat(whole, at)};
      });
}

std::vector<Variable> split(const Variable& x, int64_t parts, int64_t axis) {
  check_defined("split", x);
  const int at = normal_axis("split", axis, x.rank());
  LINNET_CHECK(parts > 0 && x.shape()[at] % parts == 0, "split: axis ", at, " of ", x.shape(), " has size ",
               x.shape()[at], ", which does not divide into ", parts, " parts");
  LINNET_CHECK(parts <= kMostParts, "split: ", parts, " parts wanted, at most ", kMostParts, " are made");
  return split(x, std::vector<int64_t>(static_cast<size_t>(parts), x.shape()[at] / parts), at);
}

Variable gather_rows(const Variable& table, const Tensor& index) {
  check_defined("gather_rows", table, index);
  return record("gather_rows", compute::gather_rows("gather_rows", table.value(), index), {table}, keep(index),
                [shape = table.shape()](const Tensor& dy, const Tensor& rows) -> Gradients {
                  Tensor d_table = Tensor::zeros(shape, dy.dtype(), dy.device());
                  compute::scatter_add_rows_inplace(d_table, rows, dy);
                  return {d_table};
                });
}

Variable broadcast_to(const Variable& x, const Shape& shape) {
  check_defined("broadcast_to", x);
  LINNET_CHECK(x.rank() <= shape.rank() && broadcast_shapes("broadcast_to", x.shape(), shape) == shape,
               "broadcast_to: ", x.shape(), " cannot be repeated to ", shape);
  return record("broadcast_to", compute::broadcast_to(x.value(), shape), {x}, keep(),
                [from = x.shape()](const Tensor& dy) -> Gradients { return {compute::sum_to(dy, from)}; });
}

}  // namespace linnet
