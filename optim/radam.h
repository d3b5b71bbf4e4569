// RAdam: Adam whose adaptive rate is switched on when its variance has settled (Liu et al. 2019, "On the Variance of
// the Adaptive Learning Rate and Beyond").
#pragma once
#include "linnet/optim/optimizer.h"

namespace linnet::optim {

struct RAdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;  ///< beside sqrt(v), before bias correction
  double weight_decay = 0;
  bool coupled = false;           ///< decay joins the gradient (PyTorch's default) instead of shrinking the weights
  double threshold = 5;           ///< rectified steps begin where rho exceeds it; the paper has 4
  bool skip_unrectified = false;  ///< the first steps move nothing but m and v (decay still applies)
};

/// The length rho of the moving average after `step` steps, and the factor r of the adaptive step.
struct Rectification {
  double rho;
  bool rectified;  ///< rho > threshold; never where 2 / (1 - beta2) - 1 <= threshold
  double r;        ///< 0 where not rectified
};
Rectification rectification(int64_t step, double beta2, double threshold);

/// For step t of a parameter with gradient g:
///     m = b1 m + (1-b1) g,   v = b2 v + (1-b2) g^2,   c1 = 1 - b1^t,   c2 = 1 - b2^t
///     rho_inf = 2/(1-b2) - 1,   rho = rho_inf - 2 t b2^t / c2
///     rho > threshold:  theta -= lr (m/c1) r sqrt(c2) / (sqrt(v) + eps)
///                       r = sqrt((rho-4) (rho-2) rho_inf / ((rho_inf-4) (rho_inf-2) rho))
///     else:             theta -= lr m/c1      (the size of these steps grows with g: clip, or skip_unrectified)
/// Scalars are f64. Decay: theta *= 1 - lr weight_decay before the move; coupled: g += weight_decay theta.
class RAdam : public Optimizer {
 public:
  explicit RAdam(std::vector<Variable> parameters, const RAdamOptions& options = {});
  explicit RAdam(std::vector<ParameterGroup> groups, const RAdamOptions& options = {});

 private:
  void update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) override;

  RAdamOptions options_;
};

}  // namespace linnet::optim
