// Linear: a learned matrix times every row, plus a learned bias.
#pragma once
#include "linnet/nn/module.h"
#include "linnet/ops/linear.h"

namespace linnet::nn {

struct LinearOptions {
  Required<int64_t> in;
  Required<int64_t> out;
  bool bias = true;
  Init weight_init = {};  ///< U(-b, b) with b = 1 / sqrt(in) where not given
  Variable tied = {};     ///< another module's (out, in) parameter to be used as the weight
};

/// y = x W^T + b: x (..., in) -> y (..., out). Weight (out, in) and bias (out) start as U(-1/sqrt(in), 1/sqrt(in)).
class Linear : public Module {
 public:
  using Options = LinearOptions;
  Linear(Module& parent, std::string name, const Options& options);

  Variable operator()(const Variable& x) const;
  /// The same without a tape, into y as it lies, or added to it.
  void into(const Tensor& x, Tensor& y, Into how = Into::overwrite) const;

  Variable weight, bias;  ///< bias is undefined where there is none
};

}  // namespace linnet::nn
