#include "linnet/optim/adam.h"

#include <cmath>
#include <limits>

#include "linnet/optim/update.h"

namespace linnet::optim {

namespace {

AdamOptions plain(const AdamWOptions& o) { return {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay}; }

}  // namespace

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options)
    : Adam(one_group(std::move(parameters)), options) {}
Adam::Adam(std::vector<ParameterGroup> groups, const AdamOptions& options)
    : Adam("adam", std::move(groups), options, true) {}

Adam::Adam(const char* op, std::vector<ParameterGroup> groups, const AdamOptions& options, bool coupled)
    : Optimizer(op, std::move(groups), options.lr, {"m", "v"}), options_(options), coupled_(coupled) {
  check_decay_and_betas(options.beta1, options.beta2, options.weight_decay);
  check_option("eps", options.eps, 0, std::numeric_limits<double>::infinity());
}

AdamW::AdamW(std::vector<Variable> parameters, const AdamWOptions& options)
    : AdamW(one_group(std::move(parameters)), options) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options)
    : Adam("adamw", std::move(groups), plain(options), false) {}

void Adam::update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) {
  const double beta1 = group.beta1.value_or(options_.beta1), beta2 = group.beta2.value_or(options_.beta2);
  const double decay = group.weight_decay.value_or(options_.weight_decay);
  const double t = static_cast<double>(slot.step);
  const double c1 = -std::expm1(t * std::log(beta1)), c2 = -std::expm1(t * std::log(beta2));
  updates.adaptive(gradient, slot.state[0], slot.state[1], slot.tied[0].mutable_value(),
                   {.beta1 = beta1,
                    .one_minus_beta1 = 1 - beta1,
                    .beta2 = beta2,
                    .one_minus_beta2 = 1 - beta2,
                    .decay_gradient = coupled_ ? decay : 0,
                    .shrink = coupled_ ? 1 : 1 - lr * decay,
                    .rate = lr / c1,
                    .scale = 1 / std::sqrt(c2),
                    .eps = options_.eps,
                    .adaptive = true});
}

}  // namespace linnet::optim
