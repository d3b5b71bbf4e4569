// Clustered attention: a GPU against the CPU, in one process.
#include "linnet/core/dispatch.h"
#include "support/both_devices.h"
#include "support/clustered_attention.h"

using namespace linnet;
using test::check_both_devices;
using test::deviation;
using test::draw_on_cpu;

namespace {

struct Sizes {
  int64_t batch, queries, keys, heads, dim, value_dim, clusters;
};

void check(const Sizes& n, Dtype dtype, bool masked, int64_t topk, bool causal) {
  CAPTURE(n.queries);
  CAPTURE(n.keys);
  CAPTURE(dtype);
  CAPTURE(masked);
  CAPTURE(topk);
  CAPTURE(causal);
  const Tensor groups = test::random_groups({n.batch, n.queries, n.heads}, n.clusters).to(Device::cpu);
  const Tensor key_steps = test::draw_mask_on_cpu({n.batch, n.keys}, 4),
               query_steps = test::draw_mask_on_cpu({n.batch, n.queries}, 5);
  const auto with = [&](Device device, auto attend) {
    const KeyMask keys = KeyMask::array(key_steps.to(device));
    const QueryMask queries = QueryMask::array(query_steps.to(device));
    const Tensor there = groups.to(device);
    return attend(ClusteredAttentionOptions{.clusters = n.clusters,
                                            .topk = topk,
                                            .causal = causal,
                                            .keys = masked ? &keys : nullptr,
                                            .queries = masked ? &queries : nullptr,
                                            .groups = &there});
  };
  check_both_devices({draw_on_cpu({n.batch, n.queries, n.heads, n.dim}, 1, dtype),
                      draw_on_cpu({n.batch, n.keys, n.heads, n.dim}, 2, dtype),
                      draw_on_cpu({n.batch, n.keys, n.heads, n.value_dim}, 3, dtype)},
                     [&](const std::vector<Variable>& x, Device device) {
                       return with(device, [&](const auto& all) { return clustered_attention(x[0], x[1], x[2], all); });
                     });
  if (n.queries != n.keys) return;
  check_both_devices({draw_on_cpu({n.batch, n.queries, 3, n.heads, n.dim}, 4, dtype)},
                     [&](const std::vector<Variable>& x, Device device) {
                       return with(device, [&](const auto& all) { return clustered_attention_qkv(x[0], all); });
                     });
}

}  // namespace

TEST_CASE("clustered attention on cuda: every form and mask") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const bool masked : {false, true}) {
      for (const auto& [topk, causal] : {std::pair<int64_t, bool>{0, false}, {3, false}, {100, false}, {3, true}}) {
        check({2, 11, 11, 2, 3, 5, 3}, dtype, masked, topk, causal);
        if (!causal) check({2, 4, 9, 1, 3, 2, 6}, dtype, masked, topk, false);
      }
      check({1, 1, 1, 1, 2, 2, 2}, dtype, masked, 1, true);
    }
  // More keys than a block has threads, and more top keys than a warp.
  check({1, 9, 300, 1, 2, 2, 2}, Dtype::f32, true, 40, false);
  check({0, 3, 3, 2, 3, 3, 2}, Dtype::f32, false, 2, false);
  check({1, 0, 3, 2, 3, 3, 2}, Dtype::f32, false, 2, false);
  check({1, 3, 0, 2, 3, 3, 2}, Dtype::f32, false, 2, false);
}

TEST_CASE("query_clusters on cuda: those of the CPU, with and without a mask") {
  if (!cuda_available()) return;
  const Tensor planes = draw_on_cpu({5, 20}, 1, Dtype::f64), x = draw_on_cpu({2, 300, 2, 4}, 2, Dtype::f64),
               steps = test::draw_mask_on_cpu({2, 300}, 3);
  const auto out = [&](Device device, bool masked) {
    const QueryMask queries = QueryMask::array(steps.to(device));
    const Tensor there = planes.to(device), q = x.to(device);
    return clustered_attention(q, q, q,
                               {.clusters = 9, .bits = 20, .queries = masked ? &queries : nullptr, .planes = &there})
        .value()
        .to(Device::cpu);
  };
  // A query in another cluster would have quite another mean of the values.
  for (const bool masked : {false, true}) CHECK(deviation(out(Device::cuda, masked), out(Device::cpu, masked)) < 1e-12);
}
