#include "linnet/ops/reduce.h"

#include <limits>
#include <span>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "linnet/ops/elementwise.h"

namespace linnet {

namespace {

using Axes = std::span<const int64_t>;
using compute::Reduction;

Axes span_of(std::initializer_list<int64_t> axes) { return {axes.begin(), axes.size()}; }

/// Both shapes of a reduction: reduced axes with size 1, and left out; and how many elements make one.
struct Plan {
  Shape kept, dropped, result;
  int64_t count = 1;
};

Plan plan(const char* op, const Variable& xv, Axes axes, bool keep_axes) {
  check_defined(op, xv);
  if (!is_float(xv.dtype())) fail_not_float(op, xv.dtype());
  const Shape& x = xv.shape();
  bool reduced[kMaxRank] = {};
  for (int64_t axis : axes) {
    const int i = normal_axis(op, axis, x.rank());
    LINNET_CHECK(!reduced[i], op, ": axis ", axis, " of ", x, " is listed twice");
    reduced[i] = true;
  }
  Plan p;
  for (int i = 0; i < x.rank(); ++i) {
    const bool gone = axes.empty() || reduced[i];
    p.kept.push_back(gone ? 1 : x[i]);
    if (gone)
      p.count *= x[i];
    else
      p.dropped.push_back(x[i]);
  }
  p.result = keep_axes ? p.kept : p.dropped;
  return p;
}

Tensor divide(const Tensor& x, double by) { return compute::div(x, Tensor::scalar(by, x.dtype(), x.device())); }

/// sum / divisor: a sum, and a mean.
Variable sum_over(const char* op, const Variable& x, Axes axes, bool keep_axes, bool average) {
  const Plan p = plan(op, x, axes, keep_axes);
  const double n = static_cast<double>(p.count);
  Tensor y = compute::reduce(Reduction::sum, x.value(), axes, keep_axes);
  if (average) y = divide(y, n);
  // records: sum, mean
  return record(op, y, {x}, keep(), [p, n, average, shape = x.shape()](const Tensor& dy) -> Gradients {
    return {compute::broadcast_to((average ? divide(dy, n) : dy).reshape(p.kept), shape)};
  });
}

Variable extreme_over(const char* op, Reduction kind, const Variable& xv, Axes axes, bool keep_axes) {
  const Plan p = plan(op, xv, axes, keep_axes);
  Tensor y = compute::reduce(kind, xv.value(), axes, keep_axes);
  // records: max, min
  return record(
      op, y, {xv}, keep(xv.value(), y), [p](const Tensor& dy, const Tensor& x, const Tensor& out) -> Gradients {
        Tensor chosen = compute::compare(CompareOp::Equal, x, out.reshape(p.kept));
        Tensor one = Tensor::scalar(1, x.dtype(), x.device()), zero = Tensor::scalar(0, x.dtype(), x.device());
        Tensor share = compute::sum_to(compute::where(chosen, one, zero), p.kept);
        return {compute::where(chosen, compute::div(dy.reshape(p.kept), share), zero)};
      });
}

// Infinities as the largest numbers: x - bounded(x) is then never NaN.
Tensor bounded(const Tensor& x) {
  const double most = x.dtype() == Dtype::f32 ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max();
  return compute::unary(UnaryOp::Clamp, x, -most, most);
}

}  // namespace

Variable sum(const Variable& x, std::initializer_list<int64_t> axes, bool keep) {
  return sum_over("sum", x, span_of(axes), keep, false);
}

Variable mean(const Variable& x, std::initializer_list<int64_t> axes, bool keep) {
  return sum_over("mean", x, span_of(axes), keep, true);
}

Variable max(const Variable& x, std::initializer_list<int64_t> axes, bool keep) {
  return extreme_over("max", Reduction::max, x, span_of(axes), keep);
}

Variable min(const Variable& x, std::initializer_list<int64_t> axes, bool keep) {
  return extreme_over("min", Reduction::min, x, span_of(axes), keep);
}

Variable logsumexp(const Variable& xv, std::initializer_list<int64_t> axes, bool keep_axes) {
  const Plan p = plan("logsumexp", xv, span_of(axes), keep_axes);
  const Tensor& x = xv.value();
  Tensor y;
  if (p.count == 0 || p.kept.numel() == 0) {
    y = Tensor::full(p.result, -std::numeric_limits<double>::infinity(), x.dtype(), x.device());
  } else {
    Tensor top = bounded(compute::reduce(Reduction::max, x, span_of(axes), true));
    Tensor total = compute::sum_to(compute::unary(UnaryOp::Exp, compute::sub(x, top)), p.kept);
    y = compute::add(compute::unary(UnaryOp::Log, total), top).reshape(p.result);
  }
  return record("logsumexp", y, {xv}, keep(x, y),
                [p](const Tensor& dy, const Tensor& in, const Tensor& out) -> Gradients {
                  Tensor shares = compute::unary(UnaryOp::Exp, compute::sub(in, bounded(out).reshape(p.kept)));
                  return {compute::mul(shares, dy.reshape(p.kept))};
                });
}

Variable var(const Variable& x, std::initializer_list<int64_t> axes, bool keep, int64_t correction) {
  const int64_t n = plan("var", x, span_of(axes), keep).count;
  const double degrees = n > correction ? static_cast<double>(n) - static_cast<double>(correction)
                                        : std::numeric_limits<double>::quiet_NaN();
  return sum(square(x - mean(x, axes, true)), axes, keep) / degrees;
}

}  // namespace linnet
