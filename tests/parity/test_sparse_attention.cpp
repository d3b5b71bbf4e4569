// LSH and clustered attention against pytorch-fast-transformers, given its hashes and its clusters: values and
// gradients (data/lsh_attention.safetensors, data/clustered_attention.safetensors).
#include "linnet/ops/clustered_attention.h"
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

TEST_CASE("clustered, improved and causal improved attention agree with fast-transformers' formulas") {
  const StateDict all = load_reference("clustered_attention.safetensors");
  CHECK(cases_of(all).size() == 3);
  for (const std::string& name : cases_of(all)) {
    const StateDict c = all.part(name);
    const Tensor groups = c.get("groups");
    const KeyMask keys = KeyMask::lengths(c.get("lengths"));
    std::vector<Variable> x;
    for (const char* input : {"q", "k", "v"}) x.push_back(Variable::leaf(c.get(input).clone()));
    Tape tape;
    const Variable y = clustered_attention(x[0], x[1], x[2],
                                           {.clusters = static_cast<int64_t>(c.number("clusters")),
                                            .topk = static_cast<int64_t>(c.number("topk")),
                                            .causal = c.number("causal") != 0,
                                            .keys = &keys,
                                            .groups = &groups});
    check_agree(name, y.value(), c.get("y"));
    tape.backward(y, c.get("dy"));
    check_agree(name + ", gradient of q", x[0].grad(), c.get("dq"));
    check_agree(name + ", gradient of k", x[1].grad(), c.get("dk"));
    check_agree(name + ", gradient of v", x[2].grad(), c.get("dv"));
  }
}
