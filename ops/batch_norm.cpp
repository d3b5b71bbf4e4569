#include "linnet/ops/batch_norm.h"

#include <array>
#include <cmath>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {
namespace {

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, const RunningStatistics& running,
           const BatchNormOptions& options) {
  LINNET_CHECK(x.rank() == 2 || x.rank() == 3, "batch_norm: input ", x.shape(),
               " is not (batch, time, dim) or (n, dim)");
  if (!is_float(x.dtype())) fail_not_float("batch_norm", x.dtype());
  LINNET_CHECK(options.eps >= 0 && std::isfinite(options.eps), "batch_norm: eps ", options.eps,
               " given, wanted: finite and not negative");
  LINNET_CHECK(options.momentum >= 0 && options.momentum <= 1, "batch_norm: momentum ", options.momentum,
               " is not in 0 .. 1");
  LINNET_CHECK(!options.keys || x.rank() == 3, "batch_norm: a key mask is for (batch, time, dim), but the input is ",
               x.shape());
  const Shape channels = x.shape().last(1);
  for (const auto& [name, part] : {std::pair("weight", &weight), std::pair("bias", &bias),
                                   std::pair("running mean", static_cast<const Tensor*>(&running.mean)),
                                   std::pair("running variance", static_cast<const Tensor*>(&running.variance))}) {
    if (!part->defined() && (part == &weight || part == &bias)) continue;
    LINNET_CHECK(part->shape() == channels, "batch_norm: input ", x.shape(), " wants a ", name, " of ", channels,
                 ", but it is ", part->shape());
    check_same_device("batch_norm", x, *part);
    check_same_dtype("batch_norm", x, *part);
  }
}

/// The rows that a mask lets through, i32, or undefined where there is no mask.
Tensor rows_that_count(const Tensor& x, const KeyMask* keys) {
  if (!keys) return {};
  const std::vector<uint8_t> steps =
      keys->steps("batch_norm", "key", x.size(0), x.size(1), x.device()).to_vector<uint8_t>();
  std::vector<int32_t> rows;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i]) rows.push_back(static_cast<int32_t>(i));
  return Tensor::from(rows, {static_cast<int64_t>(rows.size())}, x.device());
}

/// (..., dim) as (rows, dim).
Shape flat_shape(const Shape& shape) { return {shape.first(shape.rank() - 1).numel(), shape.back()}; }

/// Those rows of x (..., dim), as (n, dim).
Tensor gathered(const Tensor& x, const Tensor& rows) {
  const Tensor flat = x.reshape(flat_shape(x.shape()));
  return rows.defined() ? compute::gather_rows("batch_norm", flat, rows) : flat;
}

/// The same back in the shape of x, with 0 in the others.
Tensor scattered(const Tensor& y, const Tensor& rows, const Shape& shape) {
  if (!rows.defined()) return y.reshape(shape);
  Tensor all = Tensor::zeros(flat_shape(shape), y.dtype(), y.device());
  compute::scatter_add_rows_inplace(all, rows, y);
  return all.reshape(shape);
}

Tensor sum_rows(const Tensor& x) {
  return compute::reduce(compute::Reduction::sum, x, std::array<int64_t, 1>{0}, false);
}

Tensor mean_rows(const Tensor& x) {
  const double n = static_cast<double>(x.size(0));
  return compute::binary(BinaryOp::Div, sum_rows(x), Tensor::full({}, n, x.dtype(), x.device()));
}

/// x - mean, where the mean's own rounding is taken off too: numbers that lie close together keep their difference.
Tensor centred(const Tensor& x, const Tensor& mean, const Tensor& rest) {
  const Tensor d = compute::sub(x, mean);
  return rest.defined() ? compute::sub(d, rest) : d;
}

/// 1 / sqrt(variance + eps), 0 for 1 / 0.
Tensor reciprocal_root(const Tensor& variance, double eps) {
  const Tensor zero = Tensor::scalar(0, variance.dtype(), variance.device());
  const Tensor root = compute::unary(UnaryOp::Sqrt, compute::unary(UnaryOp::Affine, variance, 1, eps));
  const Tensor rstd = compute::div(Tensor::scalar(1, variance.dtype(), variance.device()), root);
  return compute::where(compute::compare(CompareOp::Equal, root, zero), zero, rstd);
}

/// running = momentum running + (1 - momentum) batch.
void follow(Tensor& running, const Tensor& batch, double momentum) {
  compute::scale_inplace(running, momentum);
  compute::accumulate_inplace(running, compute::scale(batch, 1 - momentum));
}

}  // namespace

Variable batch_norm(const Variable& xv, const Variable& weightv, const Variable& biasv,
                    const RunningStatistics& running, const BatchNormOptions& options) {
  check_defined("batch_norm", xv, running.mean, running.variance);
  const Tensor& x = xv.value();
  const Tensor weight = weightv.defined() ? weightv.value() : Tensor();
  const Tensor bias = biasv.defined() ? biasv.value() : Tensor();
  check(x, weight, bias, running, options);
  const Tensor rows = rows_that_count(x, options.keys), counted = gathered(x, rows);
  const bool of_batch = training() && counted.size(0) > 0;
  Tensor mean, rest, variance, d;
  if (of_batch) {
    mean = mean_rows(counted);
    rest = mean_rows(compute::sub(counted, mean));
    d = centred(counted, mean, rest);
    variance = mean_rows(compute::unary(UnaryOp::Square, d));
  } else {
    mean = running.mean.clone();  // kept for the way back, while the running one may move on
    variance = running.variance;
    d = centred(counted, mean, rest);
  }
  const Tensor rstd = reciprocal_root(variance, options.eps);
  Tensor y = compute::mul(d, rstd);
  if (weight.defined()) y = compute::mul(y, weight);
  if (bias.defined()) compute::add_row_inplace(y, bias);
  y = scattered(y, rows, x.shape());
  if (of_batch) {
    follow(running.mean, mean, options.momentum);
    follow(running.variance, variance, options.momentum);
  }

  const bool want_x = wants_grad(xv), want_weight = weight.defined() && wants_grad(weightv),
             want_bias = bias.defined() && wants_grad(biasv);
  return record("batch_norm", y, {xv, weightv, biasv}, keep(x, weight, rows, mean, rest, rstd),
                [=](const Tensor& dy_all, const Tensor& x_kept, const Tensor& weight_kept, const Tensor& rows_kept,
                    const Tensor& mean_kept, const Tensor& rest_kept, const Tensor& rstd_kept) -> Gradients {
                  const Tensor dy = gathered(dy_all, rows_kept);
                  const Tensor xhat =
                      compute::mul(centred(gathered(x_kept, rows_kept), mean_kept, rest_kept), rstd_kept);
                  Tensor dx, dweight, dbias;
                  if (want_weight) dweight = sum_rows(compute::mul(dy, xhat));
                  if (want_bias) dbias = sum_rows(dy);
                  if (want_x) {
                    Tensor h = weight_kept.defined() ? compute::mul(dy, weight_kept) : dy;
                    if (of_batch) {
                      const Tensor through = compute::mul(xhat, mean_rows(compute::mul(h, xhat)));
                      h = compute::sub(compute::sub(h, mean_rows(h)), through);
                    }
                    dx = scattered(compute::mul(h, rstd_kept), rows_kept, x_kept.shape());
                  }
                  return {dx, dweight, dbias};
                });
}

}  // namespace linnet
