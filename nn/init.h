// init: how initial weights are drawn.
#pragma once
#include <functional>

#include "linnet/core/random.h"

namespace linnet::nn {

/// Makes the initial value of a parameter (f32) from its shape and a generator that is its own.
using Init = std::function<Tensor(const Shape& shape, Generator& generator)>;

namespace init {

Init zeros();
Init ones();
Init constant(double value);
Init normal(double std);     ///< N(0, std^2)
Init uniform(double bound);  ///< U(-bound, bound)

// For weights (out, in, ...): fan_in = in * ..., fan_out = out * ... Throw where the shape has fewer than two axes.

/// U(-b, b), b = gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
Init xavier_uniform(double gain = 1);
/// U(-b, b), b = gain sqrt(3 / fan_in); gain sqrt(2) suits relu (He et al. 2015).
Init kaiming_uniform(double gain = 1.4142135623730951);

}  // namespace init
}  // namespace linnet::nn
