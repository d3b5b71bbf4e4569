// Reductions: the reduced axes are brought together (by a permuted copy where they are apart), then one kernel runs.
#include <algorithm>
#include <atomic>

#include "linnet/core/compute.h"
#include "linnet/core/kernels.h"
#include "linnet/core/threads.h"

namespace linnet::compute {
namespace {

constexpr const char* kNames[] = {"sum", "max", "min"};

struct Plan {
  Tensor x;  // with the reduced axes side by side
  int64_t outer = 1, n = 1, inner = 1;
};

Plan plan_reduction(const Tensor& x, const bool* reduced) {
  Plan plan{x};
  int first = x.rank(), last = -1, count = 0;
  for (int d = 0; d < x.rank(); ++d)
    if (reduced[d]) first = std::min(first, d), last = d, ++count;
  bool together = count == 0 || last - first + 1 == count;
  if (!together) {
    std::vector<int> order;
    for (int pass = 0; pass < 2; ++pass)
      for (int d = 0; d < x.rank(); ++d)
        if (reduced[d] == (pass == 1)) order.push_back(d);
    plan.x = permute(x, order);
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (reduced[d])
      plan.n *= x.shape()[d];
    else if (!together || d < first)
      plan.outer *= x.shape()[d];
    else
      plan.inner *= x.shape()[d];
  }
  return plan;
}

constexpr int64_t kRowsTogether = 256;

/// The sum of n rows, in blocks whose size does not depend on the threads that share them.
template <class T, class Kernel>
void sum_rows(int64_t n, int64_t inner, const T* x, T* y, Kernel kernel) {
  const int64_t blocks = (n + kRowsTogether - 1) / kRowsTogether;
  Tensor partial = Tensor::empty({blocks, inner}, dtype_of<T>, Device::cpu);
  T* sums = partial.mutable_data<T>();
  parallel_for(blocks, 0.5 * static_cast<double>(kRowsTogether * inner), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * kRowsTogether;
      kernel(1, std::min(kRowsTogether, n - first), inner, x + first * inner, sums + b * inner);
    }
  });
  kernel(1, blocks, inner, sums, y);
}

}  // namespace

Tensor reduce(Reduction kind, const Tensor& x, std::span<const int64_t> axes, bool keep) {
  const char* op = kNames[static_cast<int>(kind)];
  bool reduced[kMaxRank] = {};
  for (int64_t axis : axes) {
    bool& seen = reduced[normal_axis(op, axis, x.rank())];
    LINNET_CHECK(!seen, op, ": axis ", axis, " is named twice");
    seen = true;
  }
  if (axes.empty()) std::fill_n(reduced, x.rank(), true);
  Shape shape;
  for (int d = 0; d < x.rank(); ++d)
    if (!reduced[d] || keep) shape.push_back(reduced[d] ? 1 : x.shape()[d]);
  Plan plan = plan_reduction(x, reduced);
  LINNET_CHECK(kind == Reduction::sum || plan.n > 0 || shape.numel() == 0, op, ": ", x.shape(),
               " has nothing to reduce over");
  Tensor y = Tensor::empty(shape, x.dtype(), x.device());
  with_float(op, x.dtype(), [&]<class T>() {
    const auto& table = general_kernels<T>(x.device());
    auto kernel = kind == Reduction::sum ? table.sum : kind == Reduction::max ? table.max : table.min;
    const T* in = plan.x.data<T>();
    T* out = y.mutable_data<T>();
    if (kind == Reduction::sum && plan.outer == 1 && plan.n > 2 * kRowsTogether && x.device() == Device::cpu) {
      return sum_rows(plan.n, plan.inner, in, out, kernel);
    }
    parallel_for(x.device(), plan.outer, 0.5 * static_cast<double>(plan.n * plan.inner),
                 [&](int64_t begin, int64_t end) {
                   kernel(end - begin, plan.n, plan.inner, in + begin * plan.n * plan.inner, out + begin * plan.inner);
                 });
  });
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<int64_t> axes;
  int added = x.rank() - shape.rank();
  for (int d = 0; d < x.rank(); ++d)
    if (d < added || (shape[d - added] == 1 && x.shape()[d] != 1)) axes.push_back(d);
  if (axes.empty()) return x.reshape(shape);
  return reduce(Reduction::sum, x, axes, true).reshape(shape);
}

Tensor argmax(const Tensor& x, int64_t axis) {
  int a = normal_axis("argmax", axis, x.rank());
  LINNET_CHECK(x.shape()[a] > 0, "argmax: ", x.shape(), " has nothing along axis ", axis);
  Tensor y = Tensor::empty(x.shape().without(a), Dtype::i32, x.device());
  int64_t outer = x.shape().first(a).numel(), inner = x.shape().last(x.rank() - a - 1).numel();
  with_float("argmax", x.dtype(), [&]<class T>() {
    general_kernels<T>(x.device()).argmax(outer, x.shape()[a], inner, x.data<T>(), y.mutable_data<int32_t>());
  });
  return y;
}

Tensor cumsum(const Tensor& x, int64_t axis, bool reverse) {
  const int a = normal_axis("cumsum", axis, x.rank());
  Tensor y = empty_like(x);
  const int64_t outer = x.shape().first(a).numel(), n = x.shape()[a];
  const int64_t inner = x.shape().last(x.rank() - a - 1).numel(), step = n * inner;
  with_float("cumsum", x.dtype(), [&]<class T>() {
    const auto& table = general_kernels<T>(x.device());
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    parallel_for(x.device(), outer, static_cast<double>(step), [&](int64_t begin, int64_t end) {
      table.cumsum(end - begin, n, inner, reverse, in + begin * step, out + begin * step);
    });
  });
  return y;
}

double sum_of_squares(const Tensor& x) {
  if (x.device() != Device::cpu)
    return with_float("sum_of_squares", x.dtype(),
                      [&]<class T>() { return general_kernels<T>(x.device()).sum_of_squares(x.numel(), x.data<T>()); });
  constexpr int64_t kBlock = 1 << 16;  // blocks are summed in order, so that the result does not depend on the threads
  int64_t blocks = (x.numel() + kBlock - 1) / kBlock;
  std::vector<double> parts(static_cast<size_t>(blocks));
  with_float("sum_of_squares", x.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(x.device()).sum_of_squares;
    parallel_for(blocks, 0.5 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b)
        parts[static_cast<size_t>(b)] = kernel(std::min(kBlock, x.numel() - b * kBlock), x.data<T>() + b * kBlock);
    });
  });
  double total = 0;
  for (double part : parts) total += part;
  return total;
}

bool all_finite(const Tensor& x) {
  if (!is_float(x.dtype())) return true;
  std::atomic<bool> finite = true;
  with_float("all_finite", x.dtype(), [&]<class T>() {
    auto kernel = general_kernels<T>(x.device()).all_finite;
    parallel_for(x.device(), x.numel(), 0.5, [&](int64_t begin, int64_t end) {
      if (!kernel(end - begin, x.data<T>() + begin)) finite = false;
    });
  });
  return finite;
}

}  // namespace linnet::compute
