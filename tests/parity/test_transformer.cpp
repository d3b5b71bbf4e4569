// A 2-layer causal transformer with PyTorch's weights: logits, loss and the gradient of every parameter agree to 1e-5,
// for softmax and linear attention, pre- and post-norm (data/lm_*.safetensors, made by make_reference.py).
#include "linnet/models/causal_lm.h"
#include "linnet/ops/cross_entropy.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

void check_model(const std::string& file) {
  INFO(file);
  const StateDict reference = load_reference(file);
  auto count = [&](const char* name) { return static_cast<int64_t>(reference.number(name)); };
  const bool softmax = reference.text("attention") == "softmax_attention";
  models::CausalLM net({.vocab = count("vocab"),
                        .dim = count("dim"),
                        .layers = count("layers"),
                        .heads = count("heads"),
                        .hidden = count("hidden"),
                        .max_time = count("max_time"),
                        .kind = softmax ? nn::AttentionKind::softmax : nn::AttentionKind::linear,
                        .pre_norm = count("pre_norm") != 0,
                        .eps = softmax ? 0 : 1e-6});
  net.load_state_dict(reference.part("weights"));

  Tape tape;
  const Variable logits = net(reference.get("tokens").to(default_device()));
  check_agree("logits", logits.value(), reference.get("logits"));
  const Variable loss = cross_entropy(logits, reference.get("targets").to(default_device()), {.ignore_index = -1});
  check_agree("loss", loss.value(), reference.get("loss"));
  tape.backward(loss);

  const StateDict gradients = reference.part("gradients");
  const auto parameters = net.named_parameters();
  CHECK(parameters.size() == gradients.tensors().size());
  for (const auto& [name, parameter] : parameters) check_agree(name, parameter.grad(), gradients.get(name), 0);
}

}  // namespace

TEST_CASE("a softmax transformer agrees with PyTorch") {
  check_model("lm_softmax_pre_norm.safetensors");
  check_model("lm_softmax_post_norm.safetensors");
}

TEST_CASE("a linear transformer agrees with PyTorch") {
  check_model("lm_linear_pre_norm.safetensors");
  check_model("lm_linear_post_norm.safetensors");
}
