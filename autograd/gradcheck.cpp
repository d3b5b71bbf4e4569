#include "linnet/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"

namespace linnet {
namespace {

using Function = std::function<Variable(const std::vector<Variable>&)>;

std::vector<Variable> leaves_of(const std::vector<Tensor>& inputs) {
  std::vector<Variable> leaves;
  for (const Tensor& x : inputs) leaves.push_back(is_float(x.dtype()) ? Variable::leaf(x.clone()) : Variable(x));
  return leaves;
}

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

/// f(inputs), of constants: nothing is recorded, on a tape that may train.
Tensor value_at(const Function& f, const std::vector<Tensor>& inputs, bool training) {
  Tape tape({.training = training});
  return f({inputs.begin(), inputs.end()}).value();
}

/// The gradients of <seed, f(inputs)> by the tape.
std::vector<Tensor> gradients_at(const Function& f, const std::vector<Tensor>& inputs, const Tensor& seed,
                                 bool training) {
  std::vector<Variable> leaves = leaves_of(inputs);
  Tape tape({.training = training});
  Variable y = f(leaves);
  tape.backward(y, seed);
  std::vector<Tensor> grads;
  for (const Variable& leaf : leaves) {
    bool none = leaf.requires_grad() && !leaf.grad().defined();
    grads.push_back(none ? zeros_like(leaf.value()) : leaf.grad());
  }
  return grads;
}

/// The derivative of f along a direction in one input, by central differences.
Tensor numeric_slope(const Function& f, const std::vector<Tensor>& inputs, size_t which, const Tensor& direction,
                     const GradcheckOptions& options) {
  auto moved = [&](double distance) {
    std::vector<Tensor> at = inputs;
    at[which] = compute::add(inputs[which], compute::scale(direction, distance));
    return value_at(f, at, options.training);
  };
  return compute::scale(compute::sub(moved(options.step), moved(-options.step)), 1 / (2 * options.step));
}

Tensor unit(const Tensor& like, int64_t i) {
  std::vector<double> e(static_cast<size_t>(like.numel()), 0);
  e[static_cast<size_t>(i)] = 1;
  return Tensor::from(e, like.shape(), like.device());
}

}  // namespace

double gradcheck(const Function& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  LINNET_CHECK(f, "gradcheck: no function given");
  for (size_t i = 0; i < inputs.size(); ++i)
    LINNET_CHECK(inputs[i].dtype() != Dtype::f32, "gradcheck: input ", i, " is f32, f64 wanted");
  const Tensor y = value_at(f, inputs, options.training);
  LINNET_CHECK(y.dtype() == Dtype::f64, "gradcheck: the function gave ", y.dtype(), ", f64 wanted");
  int64_t elements = 0;
  for (const Tensor& x : inputs)
    if (x.dtype() == Dtype::f64) elements += x.numel();
  double worst = 0;
  auto compare = [&](size_t input, double analytic, double numeric, const auto&... where) {
    double deviation = std::abs(analytic - numeric) / std::max(1.0, std::abs(numeric));
    LINNET_CHECK(deviation <= options.tolerance, "gradcheck: input ", input, " of shape ", inputs[input].shape(),
                 where..., ": backward gives ", analytic, " but central differences ", numeric);
    worst = std::max(worst, deviation);
  };

  if (elements * y.numel() <= options.full_below) {
    std::vector<std::vector<std::vector<double>>> rows;  // of the Jacobian, each by input
    for (int64_t k = 0; k < y.numel(); ++k) {
      rows.emplace_back();
      for (const Tensor& grad : gradients_at(f, inputs, unit(y, k), options.training))
        rows.back().push_back(grad.defined() ? grad.to_vector<double>() : std::vector<double>());
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      for (int64_t j = 0; inputs[i].dtype() == Dtype::f64 && j < inputs[i].numel(); ++j) {
        const std::vector<double> column = numeric_slope(f, inputs, i, unit(inputs[i], j), options).to_vector<double>();
        for (size_t k = 0; k < rows.size(); ++k)
          compare(i, rows[k][i][static_cast<size_t>(j)], column[k], " element ", j, " by output element ", k);
      }
    return worst;
  }
  Generator generator{options.seed, stream_of("gradcheck"), 0};
  for (int round = 0; round < 3; ++round) {
    const Tensor seed = generator.normal(y.shape(), 0, 1, Dtype::f64, y.device());
    const std::vector<Tensor> grads = gradients_at(f, inputs, seed, options.training);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].dtype() != Dtype::f64) continue;
      const Tensor direction = generator.normal(inputs[i].shape(), 0, 1, Dtype::f64, inputs[i].device());
      compare(i, dot(grads[i], direction), dot(seed, numeric_slope(f, inputs, i, direction, options)),
              " along a random direction");
    }
  }
  return worst;
}

}  // namespace linnet
