// Predictions: how many of a model's guesses are right.
#pragma once
#include <cstdint>

#include "linnet/core/tensor.h"

namespace example {

inline constexpr int32_t kIgnored = -100;  ///< a target that counts for nothing

/// How many of the targets (...) that are not ignored are the largest of their logits (..., classes).
int64_t count_correct(const linnet::Tensor& logits, const linnet::Tensor& targets);

}  // namespace example
