// Single ops with awkward settings, values and gradients, against torch.nn.functional (data/ops.safetensors).
#include "linnet/ops/cross_entropy.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/layer_norm.h"
#include "linnet/ops/softmax_attention.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

/// f gets the case's tensors and options and its inputs as leaves; every input with a stored gradient is checked.
void check_op(const std::string& op, const std::vector<std::string>& inputs,
              const std::function<Variable(const StateDict&, const std::vector<Variable>&)>& f) {
  const StateDict all = load_reference("ops.safetensors");
  for (const std::string& name : reference_cases(all, op)) {
    const StateDict c = all.part(name);
    std::vector<Variable> leaves;
    for (const std::string& input : inputs)
      leaves.push_back(c.has(input) ? Variable::leaf(c.get(input).clone()) : Variable());
    Tape tape;
    const Variable y = f(c, leaves);
    check_agree(name, y.value(), c.get("y"));
    tape.backward(y, c.get("dy"));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (leaves[i].defined())
        check_agree(name + ", gradient of " + inputs[i], leaves[i].grad(), c.get("d" + inputs[i]));
  }
}

}  // namespace

TEST_CASE("cross_entropy with label smoothing and ignored targets agrees with PyTorch") {
  check_op("cross_entropy", {"logits"}, [](const StateDict& c, const std::vector<Variable>& in) {
    CrossEntropyOptions options;
    const std::string& reduce = c.text("reduce");
    options.reduce = reduce == "none" ? Reduce::none : reduce == "sum" ? Reduce::sum : Reduce::mean;
    options.ignore_index = static_cast<int64_t>(c.number("ignore_index"));
    options.label_smoothing = c.number("label_smoothing");
    return cross_entropy(in[0], c.get("targets"), options);
  });
}

TEST_CASE("activations agree with PyTorch, far from zero too") {
  using Op = Variable (*)(const Variable&);
  const std::vector<std::pair<std::string, Op>> table = {
      {"gelu", gelu}, {"gelu_tanh", gelu_tanh}, {"softplus", softplus}, {"sigmoid", sigmoid}};
  for (const auto& [name, op] : table)
    check_op(name, {"x"}, [f = op](const StateDict&, const std::vector<Variable>& in) { return f(in[0]); });
  check_op("elu", {"x"}, [](const StateDict&, const std::vector<Variable>& in) { return elu(in[0]); });
}

TEST_CASE("layer_norm agrees with PyTorch: large means, small spreads, several axes, constant rows") {
  check_op("layer_norm", {"x", "weight", "bias"}, [](const StateDict& c, const std::vector<Variable>& in) {
    return layer_norm(in[0], in[1], in[2], c.number("eps"));
  });
}

TEST_CASE("softmax_attention agrees with PyTorch") {
  check_op("softmax_attention", {"q", "k", "v"}, [](const StateDict& c, const std::vector<Variable>& in) {
    SoftmaxAttentionOptions options;
    options.causal = option(c, "causal", 0) != 0;
    if (c.has_text("scale")) options.scale = c.number("scale");
    std::optional<PairMask> pairs;
    if (c.has("pairs")) options.pairs = &pairs.emplace(c.get("pairs"));
    return softmax_attention(in[0], in[1], in[2], options);
  });
}
