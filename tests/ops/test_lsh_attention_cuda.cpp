// LSH attention: a GPU against the CPU, in one process.
#include "linnet/core/dispatch.h"
#include "support/both_devices.h"
#include "support/lsh_attention.h"

using namespace linnet;
using test::check_both_devices;
using test::draw_on_cpu;

namespace {

/// All three forms of the op, with these options but for the tensors among them.
void check(int64_t batch, int64_t time, int64_t heads, int64_t dim, int64_t value_dim, Dtype dtype, bool masked,
           LshAttentionOptions options) {
  CAPTURE(time);
  CAPTURE(dtype);
  CAPTURE(masked);
  const Tensor hashes = test::random_hashes({batch, time, heads, options.rounds}, 3).to(Device::cpu);
  const Tensor key_steps = test::draw_mask_on_cpu({batch, time}, 4),
               query_steps = test::draw_mask_on_cpu({batch, time}, 5);
  const auto with = [&](Device device, auto attend) {
    const KeyMask keys = KeyMask::array(key_steps.to(device));
    const QueryMask queries = QueryMask::array(query_steps.to(device));
    const Tensor there = hashes.to(device);
    LshAttentionOptions all = options;
    all.hashes = &there;
    all.keys = masked ? &keys : nullptr;
    all.queries = masked ? &queries : nullptr;
    return attend(all);
  };
  const Tensor q = draw_on_cpu({batch, time, heads, dim}, 1, dtype), k = draw_on_cpu(q.shape(), 2, dtype),
               v = draw_on_cpu({batch, time, heads, value_dim}, 3, dtype);
  check_both_devices({q, k, v}, [&](const std::vector<Variable>& x, Device device) {
    return with(device, [&](const auto& all) { return lsh_attention(x[0], x[1], x[2], all); });
  });
  check_both_devices({q, v}, [&](const std::vector<Variable>& x, Device device) {
    return with(device, [&](const auto& all) { return lsh_attention_shared(x[0], x[1], all); });
  });
  check_both_devices({draw_on_cpu({batch, time, 3, heads, dim}, 4, dtype)},
                     [&](const std::vector<Variable>& x, Device device) {
                       return with(device, [&](const auto& all) { return lsh_attention_qkv(x[0], all); });
                     });
}

}  // namespace

TEST_CASE("LSH attention on cuda: every form and mask") {
  if (!cuda_available()) return;
  test::for_each_lsh_form([](LshAttentionOptions options) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const bool masked : {false, true}) {
        options.rounds = masked ? 3 : 2;
        options.chunk = 3;
        check(2, 11, 2, 3, 5, dtype, masked, options);
      }
    options.chunk = 20;
    check(1, 75, 1, 5, 3, Dtype::f32, true, options);
  });
}

TEST_CASE("LSH attention on cuda: sizes of 0, one step, wide rows, a chunk over all, and more steps than are counted") {
  if (!cuda_available()) return;
  const LshAttentionOptions options{.chunk = 4, .rounds = 2, .causal = true};
  check(1, 0, 2, 3, 3, Dtype::f32, false, options);
  check(0, 3, 2, 3, 3, Dtype::f32, false, options);
  check(1, 3, 2, 0, 2, Dtype::f32, false, options);
  check(1, 3, 2, 2, 0, Dtype::f32, false, options);
  check(1, 1, 1, 2, 2, Dtype::f64, false, options);
  for (const LshRounds combine : {LshRounds::joint, LshRounds::mean}) {
    check(1, 9, 1, 140, 131, Dtype::f32, false, {.chunk = 4, .rounds = 2, .combine = combine});
    check(1, 70, 1, 3, 3, Dtype::f64, false, {.chunk = 1000, .rounds = 2, .self = true, .combine = combine});
  }
  check(1, 600, 1, 3, 2, Dtype::f32, true, {.chunk = 64, .rounds = 2, .causal = true});
}

TEST_CASE("LSH attention on cuda: the hashes are those of the CPU") {
  if (!cuda_available()) return;
  const Tensor x = draw_on_cpu({2, 40, 3, 7}, 1, Dtype::f64);
  Generator here{5, 0, 0}, there = here;
  CHECK(lsh_hashes(x, 10, 3, here).to_vector<int32_t>() ==
        lsh_hashes(x.to(Device::cuda), 10, 3, there).to_vector<int32_t>());
}
