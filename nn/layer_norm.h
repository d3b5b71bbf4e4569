// LayerNorm: every row brought to mean 0 and variance 1, then scaled and shifted by learned vectors.
#pragma once
#include "linnet/nn/module.h"

namespace linnet::nn {

struct LayerNormOptions {
  Required<int64_t> dim;
  double eps = 1e-5;
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axis: x (..., dim). Weight starts as ones, bias
/// as zeros.
class LayerNorm : public Module {
 public:
  using Options = LayerNormOptions;
  LayerNorm(Module& parent, std::string name, const Options& options);

  Variable operator()(const Variable& x) const;
  /// The same without a tape, into y, which is not x.
  void into(const Tensor& x, Tensor& y) const;

  Variable weight, bias;

 private:
  double eps_;
};

}  // namespace linnet::nn
