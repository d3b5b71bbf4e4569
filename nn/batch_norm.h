// BatchNorm: every channel brought to mean 0 and variance 1 over a batch, then scaled and shifted by learned vectors.
#pragma once
#include "linnet/nn/module.h"
#include "linnet/ops/batch_norm.h"

namespace linnet::nn {

struct BatchNormOptions {
  Required<int64_t> dim;
  double momentum = 0.9;  ///< how much of the running statistics stays in a training step, 0 .. 1
  double eps = 1e-5;
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias: x (batch, time, dim) or (n, dim). With the statistics of the
/// batch where training(), which a Tape in scope decides, and then the buffers `mean` and `variance` follow them; else
/// with these. Weight and variance start as ones, bias and mean as zeros. linnet::batch_norm has the details.
class BatchNorm : public Module {
 public:
  using Options = BatchNormOptions;
  BatchNorm(Module& parent, std::string name, const Options& options);

  /// `keys` leaves padding out; its y is 0.
  Variable operator()(const Variable& x, const KeyMask* keys = nullptr) const;

  Variable weight, bias;

 private:
  Tensor &mean_, &variance_;
  double momentum_, eps_;
};

}  // namespace linnet::nn
