#include "linnet/optim/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "linnet/core/compute.h"
#include "linnet/optim/update.h"

namespace linnet::optim {

namespace {

struct Gradients {
  std::vector<Variable> parameters;  // that have one, each once
  std::vector<Tensor> all;
  double norm;
};

/// The norm of f64 gradients whose squares leave the range of a double: divides by the largest first.
double far_norm(const std::vector<Tensor>& gradients, double sum) {
  double largest = 0;
  for (const Tensor& gradient : gradients) {
    if (gradient.numel() == 0) continue;
    largest = std::max(
        largest, compute::reduce(compute::Reduction::max, compute::unary(UnaryOp::Abs, gradient), {}, false).item());
  }
  if (largest < std::numeric_limits<double>::min()) return largest == 0 ? 0 : std::sqrt(sum);
  sum = 0;
  for (const Tensor& gradient : gradients) sum += compute::sum_of_squares(compute::scale(gradient, 1 / largest));
  return largest * std::sqrt(sum);
}

/// Those that are there, all of them finite.
Gradients gradients_of(const char* op, const std::vector<Variable>& parameters) {
  Gradients found;
  std::vector<std::string> names;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Variable& parameter = parameters[i];
    LINNET_CHECK(parameter.defined(), op, ": parameter ", i, " is undefined");
    if (!parameter.grad().defined()) continue;
    if (std::any_of(found.parameters.begin(), found.parameters.end(),
                    [&](const Variable& other) { return other.same_as(parameter); }))
      continue;
    names.push_back(parameter.name().empty() ? std::to_string(i) : "\"" + parameter.name() + "\"");
    LINNET_CHECK(is_float(parameter.grad().dtype()), op, ": the gradient of parameter ", names.back(), " is ",
                 parameter.grad().dtype(), ", f32 or f64 wanted");
    found.parameters.push_back(parameter);
    found.all.push_back(parameter.grad());
  }
  const std::vector<GradientSize> sizes = sizes_of(found.all);
  double sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    LINNET_CHECK(sizes[i].finite, op, ": the gradient of parameter ", names[i], " has a value that is not finite");
    sum += sizes[i].sum_of_squares;
  }
  found.norm = std::isfinite(sum) && sum > 1e-280 ? std::sqrt(sum) : far_norm(found.all, sum);
  return found;
}

}  // namespace

double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm) {
  LINNET_CHECK(max_norm > 0, "clip_grad_norm: max_norm ", max_norm, " given, wanted: above 0");
  Gradients gradients = gradients_of("clip_grad_norm", parameters);
  const double norm = gradients.norm;
  if (norm <= max_norm) return norm;
  // A factor that may be no normal f32, or no f64, is applied as its root, twice.
  const double factor = max_norm / norm, root = std::sqrt(max_norm) / std::sqrt(norm);
  if (factor > 1e-30) {
    scale(gradients.all, factor);
  } else {
    scale(gradients.all, root);
    scale(gradients.all, root);
  }
  return norm;
}

double clip_grad_value(const std::vector<Variable>& parameters, double limit) {
  LINNET_CHECK(limit > 0, "clip_grad_value: limit ", limit, " given, wanted: above 0");
  Gradients gradients = gradients_of("clip_grad_value", parameters);
  for (Variable& parameter : gradients.parameters)
    parameter.mutable_grad() = compute::unary(UnaryOp::Clamp, parameter.grad(), -limit, limit);
  return gradients.norm;
}

}  // namespace linnet::optim
