#include "linnet/optim/radam.h"

#include <cmath>
#include <limits>

#include "linnet/optim/update.h"

namespace linnet::optim {

Rectification rectification(int64_t step, double beta2, double threshold) {
  const double t = static_cast<double>(step);
  const double c2 = -std::expm1(t * std::log(beta2));  // 1 - beta2^t without cancellation
  const double rho_inf = 2 / (1 - beta2) - 1;
  const double rho = rho_inf - 2 * t * std::pow(beta2, t) / c2;
  if (rho_inf <= threshold || rho <= threshold) return {rho, false, 0};
  return {rho, true, std::sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))};
}

RAdam::RAdam(std::vector<Variable> parameters, const RAdamOptions& options)
    : RAdam(one_group(std::move(parameters)), options) {}

RAdam::RAdam(std::vector<ParameterGroup> groups, const RAdamOptions& options)
    : Optimizer("radam", std::move(groups), options.lr, {"m", "v"}), options_(options) {
  check_decay_and_betas(options.beta1, options.beta2, options.weight_decay);
  check_option("eps", options.eps, 0, std::numeric_limits<double>::infinity());
  check_option("threshold", options.threshold, 4, std::numeric_limits<double>::infinity());
}

void RAdam::update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) {
  const double beta1 = group.beta1.value_or(options_.beta1), beta2 = group.beta2.value_or(options_.beta2);
  const double decay = group.weight_decay.value_or(options_.weight_decay);
  const double t = static_cast<double>(slot.step);
  const double c1 = -std::expm1(t * std::log(beta1)), c2 = -std::expm1(t * std::log(beta2));
  const Rectification now = rectification(slot.step, beta2, options_.threshold);
  double rate = lr / c1;
  if (now.rectified) rate *= now.r * std::sqrt(c2);
  if (!now.rectified && options_.skip_unrectified) rate = 0;
  updates.adaptive(gradient, slot.state[0], slot.state[1], slot.tied[0].mutable_value(),
                   {.beta1 = beta1,
                    .one_minus_beta1 = 1 - beta1,
                    .beta2 = beta2,
                    .one_minus_beta2 = 1 - beta2,
                    .decay_gradient = options_.coupled ? decay : 0,
                    .shrink = options_.coupled ? 1 : 1 - lr * decay,
                    .rate = rate,
                    .scale = 1,
                    .eps = options_.eps,
                    .adaptive = now.rectified});
}

}  // namespace linnet::optim
