// LSH and clustered attention against pytorch-fast-transformers, given its hashes and its clusters: values and
// gradients (data/lsh_attention.safetensors, data/clustered_attention.safetensors).
#include "linnet/ops/lsh_attention.h"
#include "parity/reference.h"

using namespace linnet;
using namespace test_support;

namespace {

/// The names of the cases of a file.
std::set<std::string> cases_of(const StateDict& all) {
  std::set<std::string> cases;
  for (const auto& [name, tensor] : all.tensors()) cases.insert(name.substr(0, name.rfind('.')));
  REQUIRE(!cases.empty());
  return cases;
}

}  // namespace

TEST_CASE("LSH attention over all buckets of its chunks, as the mean of its rounds, is fast-transformers' Reformer") {
  const StateDict all = load_reference("lsh_attention.safetensors");
  for (const std::string& name : cases_of(all)) {
    const StateDict c = all.part(name);
    const Tensor hashes = c.get("hashes");
    const Variable q = Variable::leaf(c.get("q").clone()), v = Variable::leaf(c.get("v").clone());
    Tape tape;
    const Variable y = lsh_attention_shared(q, v,
                                            {.chunk = static_cast<int64_t>(c.number("chunk")),
                                             .rounds = static_cast<int64_t>(c.number("rounds")),
                                             .causal = c.number("causal") != 0,
                                             .self = c.number("own") != 0,
                                             .own_bucket = false,
                                             .combine = LshRounds::mean,
                                             .hashes = &hashes});
    check_agree(name, y.value(), c.get("y"));
    tape.backward(y, c.get("dy"));
    check_agree(name + ", gradient of q", q.grad(), c.get("dq"));
    check_agree(name + ", gradient of v", v.grad(), c.get("dv"));
  }
}
