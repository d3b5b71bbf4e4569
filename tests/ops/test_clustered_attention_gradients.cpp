#include "linnet/ops/clustered_attention.h"
#include "support/arrays.h"
#include "support/clustered_attention.h"
#include "support/gradients.h"
#include "support/modules.h"

using namespace linnet;

namespace {

Tensor draw(const Shape& shape, uint64_t seed) { return test::normal(shape, seed, Dtype::f64); }

}  // namespace

TEST_CASE("gradients of clustered attention") {
  const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {2, 7}));
  const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}, {2, 7}));
  const KeyMask few_keys = KeyMask::lengths({3, 2});
  const QueryMask few_queries = QueryMask::lengths({2, 3});
  for (const auto& [topk, causal] : test::kClusteredForms) {
    CAPTURE(topk);
    CAPTURE(causal);
    const auto check = [topk = topk, causal = causal](const Shape& q, const Shape& k, const Shape& v,
                                                      const KeyMask* km = nullptr, const QueryMask* qm = nullptr) {
      const Tensor groups = test::random_groups(q.first(3), 3);
      const ClusteredAttentionOptions options{
          .clusters = 3, .topk = topk, .causal = causal, .keys = km, .queries = qm, .groups = &groups};
      check_gradients("clustered_attention",
                      [&](const auto& x) { return clustered_attention(x[0], x[1], x[2], options); },
                      {draw(q, 1), draw(k, 2), draw(v, 3)});
    };
    if (test::on_cuda()) {  // a call takes 0.1 s on the emulated device: one of each kind
      if (topk == 3) check({2, 3, 1, 2}, {2, 3, 1, 2}, {2, 3, 1, 1}, &few_keys, &few_queries);
      continue;
    }
    for (const KeyMask* km : {static_cast<const KeyMask*>(nullptr), &keys})
      for (const QueryMask* qm : {static_cast<const QueryMask*>(nullptr), &queries})
        check({2, 7, 1, 2}, {2, 7, 1, 2}, {2, 7, 1, 3}, km, qm);
    check({1, 150, 1, 3}, {1, 150, 1, 3}, {1, 150, 1, 2});
    check({1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3});
    check({0, 3, 2, 3}, {0, 3, 2, 3}, {0, 3, 2, 3});
    check({1, 3, 2, 0}, {1, 3, 2, 0}, {1, 3, 2, 2});
    check({1, 3, 2, 2}, {1, 3, 2, 2}, {1, 3, 2, 0});
    if (!causal) {
      check({1, 3, 2, 2}, {1, 6, 2, 2}, {1, 6, 2, 2});
      check({1, 3, 2, 2}, {1, 0, 2, 2}, {1, 0, 2, 2});
      check({1, 0, 2, 2}, {1, 3, 2, 2}, {1, 3, 2, 2});
    }
    const Tensor groups = test::random_groups({2, 4, 2}, 3);
    check_gradients("clustered_attention_qkv",
                    [&, topk = topk, causal = causal](const auto& x) {
                      return clustered_attention_qkv(
                          x[0], {.clusters = 3, .topk = topk, .causal = causal, .groups = &groups});
                    },
                    {draw({2, 4, 3, 2, 2}, 1)});
  }
}
