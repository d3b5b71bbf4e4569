// One class a row of logits, drawn by a GPU where they lie; models/sampling.h is what users call. Private to models/.
#pragma once
#include <span>

#include "linnet/core/tensor.h"

namespace linnet {

/// As models::SamplingOptions, with a temperature above 0.
struct SampleOptions {
  double temperature;
  int64_t top_k;
  double top_p;
};

/// logits (batch, classes) on the device cuda, u (batch) in [0, 1) -> i32 (batch) of the CPU: by the rules of
/// models/sampling.cpp, with sums in another order. The same u gives the same class, then, unless it falls on the
/// border of two, or top_p does, to the rounding of f64. -1 where a logit is NaN or +infinity, or all are -infinity.
Tensor sample_rows(const Tensor& logits, std::span<const double> u, const SampleOptions& options);

}  // namespace linnet
