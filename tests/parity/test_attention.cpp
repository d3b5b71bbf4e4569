// The dense attentions against pytorch-fast-transformers, with lengths of the keys: values and gradients
// (data/attention.safetensors, made by make_attention.py).
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/local_attention.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

/// attend(q, k, v, key mask, causal, case) for every case of the kind.
template <class Attend>
void check_kind(const std::string& kind, Attend attend) {
  const StateDict all = load_reference("attention.safetensors");
  for (const std::string& name : reference_cases(all, kind)) {
    const StateDict c = all.part(name);
    const KeyMask keys = KeyMask::lengths(c.get("lengths"));
    std::vector<Variable> x;
    for (const char* input : {"q", "k", "v"}) x.push_back(Variable::leaf(c.get(input).clone()));
    Tape tape;
    const Variable y = attend(x[0], x[1], x[2], keys, option(c, "causal", 0) != 0, c);
    check_agree(name, y.value(), c.get("y"));
    tape.backward(y, c.get("dy"));
    check_agree(name + ", gradient of q", x[0].grad(), c.get("dq"));
    check_agree(name + ", gradient of k", x[1].grad(), c.get("dk"));
    check_agree(name + ", gradient of v", x[2].grad(), c.get("dv"));
  }
}

}  // namespace

TEST_CASE("softmax attention agrees with fast-transformers' full attention") {
  check_kind("full", [](auto& q, auto& k, auto& v, const KeyMask& keys, bool causal, const StateDict&) {
    return softmax_attention(q, k, v, {.causal = causal, .keys = &keys});
  });
}

TEST_CASE("linear attention agrees with fast-transformers' linear and causal-linear attention") {
  for (const char* kind : {"linear", "causal_linear"})
    check_kind(kind, [](auto& q, auto& k, auto& v, const KeyMask& keys, bool causal, const StateDict&) {
      return linear_attention(q, k, v, {.causal = causal, .eps = 1e-6, .keys = &keys});
    });
}

TEST_CASE("local attention agrees with fast-transformers' local attention of 2 window + 1 steps") {
  check_kind("local", [](auto& q, auto& k, auto& v, const KeyMask& keys, bool causal, const StateDict& c) {
    return local_attention(q, k, v,
                           {.window = static_cast<int64_t>(c.number("window")), .causal = causal, .keys = &keys});
  });
}
