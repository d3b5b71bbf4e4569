// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019), numbers as PyTorch's.
#pragma once
#include "linnet/optim/optimizer.h"

namespace linnet::optim {

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;        ///< after bias correction
  double weight_decay = 0;  ///< joins the gradient: g += weight_decay theta
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;           ///< after bias correction
  double weight_decay = 0.01;  ///< shrinks the weights: theta *= 1 - lr weight_decay
};

/// For step t of a parameter with gradient g:
///     m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   theta -= lr (m/c1) / (sqrt(v/c2) + eps),   ck = 1 - bk^t
/// Scalars are f64.
class Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Variable> parameters, const AdamOptions& options = {});
  explicit Adam(std::vector<ParameterGroup> groups, const AdamOptions& options = {});

 protected:
  Adam(const char* op, std::vector<ParameterGroup> groups, const AdamOptions& options, bool coupled);

 private:
  void update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) override;

  AdamOptions options_;
  bool coupled_;
};

/// Adam with decoupled weight decay.
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Variable> parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options = {});
};

}  // namespace linnet::optim
