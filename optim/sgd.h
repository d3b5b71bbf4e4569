// SGD: gradient descent, with momentum.
#pragma once
#include "linnet/optim/optimizer.h"

namespace linnet::optim {

struct SGDOptions {
  double lr = 1e-2;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool coupled = true;  ///< decay joins the gradient (PyTorch's form) instead of shrinking the weights
};

/// m = momentum m + g;  theta -= lr m,  or lr (g + momentum m) with nesterov. Groups cannot set betas.
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Variable> parameters, const SGDOptions& options = {});
  explicit SGD(std::vector<ParameterGroup> groups, const SGDOptions& options = {});

 private:
  void update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) override;

  SGDOptions options_;
};

}  // namespace linnet::optim
