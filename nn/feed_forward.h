// FeedForward: two linear layers with a nonlinearity between them, applied to every step alone.
#pragma once
#include "linnet/core/workspace.h"
#include "linnet/nn/dropout.h"
#include "linnet/nn/linear.h"

namespace linnet::nn {

enum class Activation { gelu, gelu_tanh, relu, elu, tanh };

Variable activate(Activation activation, const Variable& x);
void activate_into(Activation activation, const Tensor& x, Tensor& y);  ///< the same without a tape

struct FeedForwardOptions {
  Required<int64_t> dim;
  Required<int64_t> hidden;
  Activation activation = Activation::gelu;
  double dropout = 0;  ///< of the hidden units
};

/// y = down(dropout(activation(up(x)))): x (..., dim) -> y (..., dim).
class FeedForward : public Module {
 public:
  using Options = FeedForwardOptions;
  FeedForward(Module& parent, std::string name, const Options& options);

  Variable operator()(const Variable& x) const;
  /// y += the same, without a tape and without dropout.
  void add_to(Tensor& y, const Tensor& x, Workspace& workspace) const;

  Linear up, down;
  Dropout dropout;

 private:
  Activation activation_;
};

}  // namespace linnet::nn
