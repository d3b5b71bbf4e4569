#include "linnet/optim/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/core/compute.h"

namespace linnet::optim {

namespace {

/// The gradients that are there, each once, all of them finite.
std::vector<Variable> with_gradients(const char* op, const std::vector<Variable>& parameters) {
  std::vector<Variable> result;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Variable& parameter = parameters[i];
    LINNET_CHECK(parameter.defined(), op, ": parameter ", i, " is undefined");
    if (!parameter.grad().defined()) continue;
    if (std::any_of(result.begin(), result.end(), [&](const Variable& other) { return other.same_as(parameter); }))
      continue;
    const std::string name = parameter.name().empty() ? std::to_string(i) : "\"" + parameter.name() + "\"";
    LINNET_CHECK(is_float(parameter.grad().dtype()), op, ": the gradient of parameter ", name, " is ",
                 parameter.grad().dtype(), ", f32 or f64 wanted");
    LINNET_CHECK(compute::all_finite(parameter.grad()), op, ": the gradient of parameter ", name,
                 " has a value that is not finite");
    result.push_back(parameter);
  }
  return result;
}

double norm_of(const std::vector<Variable>& parameters) {
  double sum = 0;
  for (const Variable& parameter : parameters) sum += compute::sum_of_squares(parameter.grad());
  if (std::isfinite(sum) && sum > 1e-280) return std::sqrt(sum);
  // f64 gradients whose squares leave the range of a double: divide by the largest first.
  double largest = 0;
  for (const Variable& parameter : parameters) {
    const Tensor& gradient = parameter.grad();
    if (gradient.numel() == 0) continue;
    largest = std::max(
        largest, compute::reduce(compute::Reduction::max, compute::unary(UnaryOp::Abs, gradient), {}, false).item());
  }
  if (largest < std::numeric_limits<double>::min()) return largest == 0 ? 0 : std::sqrt(sum);
  sum = 0;
  for (const Variable& parameter : parameters)
    sum += compute::sum_of_squares(compute::scale(parameter.grad(), 1 / largest));
  return largest * std::sqrt(sum);
}

}  // namespace

double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm) {
  LINNET_CHECK(max_norm > 0, "clip_grad_norm: max_norm ", max_norm, " given, wanted: above 0");
  std::vector<Variable> clipped = with_gradients("clip_grad_norm", parameters);
  const double norm = norm_of(clipped);
  if (norm <= max_norm) return norm;
  // A factor that may be no normal f32, or no f64, is applied as its root, twice.
  const double factor = max_norm / norm, root = std::sqrt(max_norm) / std::sqrt(norm);
  for (Variable& parameter : clipped) {
    Tensor& gradient = parameter.mutable_grad();
    if (factor > 1e-30) {
      compute::scale_inplace(gradient, factor);
    } else {
      compute::scale_inplace(gradient, root);
      compute::scale_inplace(gradient, root);
    }
  }
  return norm;
}

double clip_grad_value(const std::vector<Variable>& parameters, double limit) {
  LINNET_CHECK(limit > 0, "clip_grad_value: limit ", limit, " given, wanted: above 0");
  std::vector<Variable> clipped = with_gradients("clip_grad_value", parameters);
  const double norm = norm_of(clipped);
  for (Variable& parameter : clipped)
    parameter.mutable_grad() = compute::unary(UnaryOp::Clamp, parameter.grad(), -limit, limit);
  return norm;
}

}  // namespace linnet::optim
