// cross_entropy: the classification loss, from logits.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"
#include "linnet/ops/reduce_kind.h"

namespace linnet {

struct CrossEntropyOptions {
  Reduce reduce = Reduce::mean;  ///< mean: over the targets that are not ignored
  std::optional<int64_t> ignore_index =
      std::nullopt;            ///< targets with this value give loss 0 and gradient 0; any number
  double label_smoothing = 0;  ///< s in 0 .. 1: this much of the target is spread evenly over all classes
};

/// Per target t: loss = (1 - s) (lse - x_t) + s / C sum_c (lse - x_c), lse = max + log sum_c exp(x_c - max).
///
/// logits (..., C), targets i32 (...); the result is () or, with Reduce::none, (...). The mean is 0, with gradient 0,
/// where every target is ignored. Finite logits never give NaN. Backward: dx = dloss (softmax(x) - (1 - s) onehot(t) -
/// s / C), divided by the number of targets not ignored for the mean. Kept: the logits and two numbers a row. Errors:
/// shapes that do not fit, a target outside 0 .. C-1 that is not ignored, smoothing outside 0 .. 1.
Variable cross_entropy(const Variable& logits, const Tensor& targets, const CrossEntropyOptions& options = {});

}  // namespace linnet
