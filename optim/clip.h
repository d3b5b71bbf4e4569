// Gradient clipping, by norm and by value.
#pragma once
#include <vector>

#include "linnet/autograd/variable.h"

namespace linnet::optim {

/// Where the Euclidean norm of all gradients together exceeds max_norm, scales them all by max_norm / norm. Returns the
/// norm before; parameters without a gradient count for nothing. Cannot overflow: the norm of 100 values of 1e20 is
/// 1e21. Throws, naming the parameter, and changes nothing where a gradient has a value that is not finite.
double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm);

/// Clamps every element of every gradient to [-limit, limit]; returns and refuses the same.
double clip_grad_value(const std::vector<Variable>& parameters, double limit);

}  // namespace linnet::optim
