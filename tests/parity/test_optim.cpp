// Optimizers over 20 steps of gradients from 1e-4 to 10, and clipping, against torch.optim (data/optim.safetensors).
#include "linnet/optim/adam.h"
#include "linnet/optim/clip.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/sgd.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

/// make(parameters, case) gives the optimizer with the case's options.
template <class Make>
void check_path(const std::string& kind, Make make) {
  const StateDict all = load_reference("optim.safetensors");
  for (const std::string& name : reference_cases(all, kind)) {
    const StateDict c = all.part(name);
    Variable p = Variable::leaf(c.get("start").clone(), "p");
    auto optimizer = make(std::vector<Variable>{p}, c);
    const Tensor& gradients = c.get("gradients");
    for (int64_t step = 0; step < gradients.size(0); ++step) {
      p.mutable_grad() = gradients.slice(step, step + 1).reshape(p.shape()).clone();
      optimizer.step();
      check_agree(name + " after step " + std::to_string(step + 1), p.value(),
                  c.get("path").slice(step, step + 1).reshape(p.shape()));
    }
  }
}

}  // namespace

TEST_CASE("SGD follows PyTorch's path") {
  check_path("sgd", [](const std::vector<Variable>& p, const StateDict& c) {
    return optim::SGD(p, {.lr = c.number("lr"),
                          .momentum = option(c, "momentum", 0),
                          .nesterov = option(c, "nesterov", 0) != 0,
                          .weight_decay = option(c, "weight_decay", 0)});
  });
}

TEST_CASE("Adam follows PyTorch's path") {
  check_path("adam", [](const std::vector<Variable>& p, const StateDict& c) {
    return optim::Adam(p, {.lr = c.number("lr"),
                           .beta1 = option(c, "beta1", 0.9),
                           .beta2 = option(c, "beta2", 0.999),
                           .eps = option(c, "eps", 1e-8),
                           .weight_decay = option(c, "weight_decay", 0)});
  });
}

TEST_CASE("AdamW follows PyTorch's path") {
  check_path("adamw", [](const std::vector<Variable>& p, const StateDict& c) {
    return optim::AdamW(p, {.lr = c.number("lr"),
                            .beta1 = option(c, "beta1", 0.9),
                            .beta2 = option(c, "beta2", 0.999),
                            .eps = option(c, "eps", 1e-8),
                            .weight_decay = option(c, "weight_decay", 0)});
  });
}

TEST_CASE("RAdam follows PyTorch's path, with either kind of weight decay") {
  check_path("radam", [](const std::vector<Variable>& p, const StateDict& c) {
    return optim::RAdam(p, {.lr = c.number("lr"),
                            .beta1 = option(c, "beta1", 0.9),
                            .beta2 = option(c, "beta2", 0.999),
                            .eps = option(c, "eps", 1e-8),
                            .weight_decay = option(c, "weight_decay", 0),
                            .coupled = option(c, "coupled", 0) != 0});
  });
}

TEST_CASE("clip_grad_norm agrees with PyTorch") {
  const StateDict all = load_reference("ops.safetensors");
  for (const std::string& name : reference_cases(all, "clip_grad_norm")) {
    const StateDict c = all.part(name);
    std::vector<Variable> parameters;
    for (int i = 0; i < 3; ++i) {
      const Tensor& gradient = c.get("before" + std::to_string(i));
      parameters.push_back(Variable::leaf(zeros_like(gradient), "p" + std::to_string(i)));
      parameters.back().mutable_grad() = gradient.clone();
    }
    CHECK(optim::clip_grad_norm(parameters, c.number("max_norm")) == doctest::Approx(c.number("norm")).epsilon(1e-6));
    for (int i = 0; i < 3; ++i)
      check_agree(name, parameters[static_cast<size_t>(i)].grad(), c.get("after" + std::to_string(i)));
  }
}
