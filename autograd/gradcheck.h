// gradcheck: compares an op's gradients with central differences.
#pragma once
#include <functional>
#include <vector>

#include "linnet/autograd/variable.h"

namespace linnet {

struct GradcheckOptions {
  double step = 1e-5;       ///< of the central differences
  double tolerance = 1e-6;  ///< |analytic - numeric| <= tolerance * max(1, |numeric|)
  int64_t full_below =
      4096;               ///< full Jacobian where inputs x outputs elements are at most this, else random directions
  bool training = false;  ///< the tape trains: f must then seed what it draws
  uint64_t seed = 1;      ///< of the random direction and the random upstream gradient
};

/// f maps leaves (f64, as given) to one output of any shape. Throws Error that says which input, which element, what
/// was expected and what came; returns the largest deviation. Kinks are the caller's duty. f must be a function: the
/// same inputs, the same output.
double gradcheck(const std::function<Variable(const std::vector<Variable>&)>& f, const std::vector<Tensor>& inputs,
                 const GradcheckOptions& options = {});

}  // namespace linnet
