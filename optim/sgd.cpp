#include "linnet/optim/sgd.h"

#include <limits>

#include "linnet/optim/update.h"

namespace linnet::optim {

namespace {

std::vector<std::string> state_names(const SGDOptions& options) {
  if (options.momentum == 0) return {};
  return {"momentum"};
}

}  // namespace

SGD::SGD(std::vector<Variable> parameters, const SGDOptions& options)
    : SGD(one_group(std::move(parameters)), options) {}

SGD::SGD(std::vector<ParameterGroup> given, const SGDOptions& options)
    : Optimizer("sgd", std::move(given), options.lr, state_names(options)), options_(options) {
  check_option("momentum", options.momentum, 0, 1);
  check_decay_and_betas(0, 0, options.weight_decay);
  for (const ParameterGroup& group : groups())
    LINNET_CHECK(!group.beta1 && !group.beta2, "sgd: a group sets betas, which sgd does not have");
  LINNET_CHECK(!options.nesterov || options.momentum > 0, "sgd: nesterov given with momentum 0");
}

void SGD::update(Slot& slot, const ParameterGroup& group, const Tensor& gradient, double lr, Updates& updates) {
  const double decay = group.weight_decay.value_or(options_.weight_decay);
  updates.descent(gradient, slot.state.empty() ? Tensor() : slot.state[0], slot.tied[0].mutable_value(),
                  {.momentum = options_.momentum,
                   .decay_gradient = options_.coupled ? decay : 0,
                   .shrink = options_.coupled ? 1 : 1 - lr * decay,
                   .rate = lr,
                   .nesterov = options_.nesterov});
}

}  // namespace linnet::optim
