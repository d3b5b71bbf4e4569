// Softmax attention, local attention and their steps: a GPU against the CPU, in one process.
#include <optional>

#include "linnet/core/compute.h"
#include "linnet/core/dispatch.h"
#include "linnet/ops/local_attention.h"
#include "linnet/ops/softmax_attention.h"
#include "support/both_devices.h"

using namespace linnet;
using test::check_both_devices;
using test::deviation;

namespace {

double tolerance(Dtype dtype) { return dtype == Dtype::f32 ? 1e-5 : 1e-12; }

struct Sizes {
  int64_t batch, queries, keys, heads, dim, value_dim;
};

struct Masks {
  bool causal = false, keys = false, queries = false, pairs = false;
  std::optional<double> scale = {};
};

void check(const Sizes& n, Dtype dtype, const Masks& masks) {
  CAPTURE(n.queries);
  CAPTURE(n.keys);
  CAPTURE(n.dim);
  CAPTURE(n.value_dim);
  CAPTURE(dtype);
  const Tensor key_steps = test::draw_mask_on_cpu({n.batch, n.keys}, 4),
               query_steps = test::draw_mask_on_cpu({n.batch, n.queries}, 5),
               pair_steps = test::draw_mask_on_cpu({n.queries, n.keys}, 6);
  check_both_devices({test::draw_on_cpu({n.batch, n.queries, n.heads, n.dim}, 1, dtype),
                      test::draw_on_cpu({n.batch, n.keys, n.heads, n.dim}, 2, dtype),
                      test::draw_on_cpu({n.batch, n.keys, n.heads, n.value_dim}, 3, dtype)},
                     [&](const std::vector<Variable>& x, Device device) {
                       const KeyMask keys = KeyMask::array(key_steps.to(device));
                       const QueryMask queries = QueryMask::array(query_steps.to(device));
                       const PairMask pairs(pair_steps.to(device));
                       return softmax_attention(x[0], x[1], x[2],
                                                {.causal = masks.causal,
                                                 .scale = masks.scale,
                                                 .keys = masks.keys ? &keys : nullptr,
                                                 .queries = masks.queries ? &queries : nullptr,
                                                 .pairs = masks.pairs ? &pairs : nullptr});
                     });
}

}  // namespace

TEST_CASE("softmax attention on cuda: sizes around a tile, and a thousand steps") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const int64_t time : {1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129})
      for (const bool causal : {false, true}) check({1, time, time, 2, 5, 3}, dtype, {.causal = causal});
  check({1, 1025, 1025, 1, 7, 9}, Dtype::f32, {.causal = true});
  check({1, 1025, 1025, 1, 2, 3}, Dtype::f64, {.causal = true});
  check({1, 3, 1025, 2, 5, 3}, Dtype::f32, {});
  check({1, 1025, 3, 1, 5, 3}, Dtype::f32, {});
}

TEST_CASE("softmax attention on cuda: every mask") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const bool causal : {false, true})
      for (int masked = 0; masked < 8; ++masked) {
        const Masks masks{.causal = causal,
                          .keys = (masked & 1) != 0,
                          .queries = (masked & 2) != 0,
                          .pairs = (masked & 4) != 0,
                          .scale = masked == 5 ? std::optional<double>(0.7) : std::nullopt};
        check({2, 9, 9, 2, 3, 5}, dtype, masks);
        check({2, 70, causal ? 70 : 41, 2, 3, 5}, dtype, masks);
      }
}

TEST_CASE("softmax attention on cuda: every width, also of more than one launch; sizes of 0") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& [dim, value_dim] : {std::pair<int64_t, int64_t>{1, 1}, {31, 33}, {32, 64}, {65, 129}, {260, 100}})
      for (const int64_t time : {5, 35}) check({1, time, time, 1, dim, value_dim}, dtype, {.causal = true});
  for (const Sizes& n : {Sizes{0, 3, 3, 2, 3, 4}, Sizes{1, 0, 3, 2, 3, 4}, Sizes{1, 3, 0, 2, 3, 4},
                         Sizes{1, 3, 3, 0, 3, 4}, Sizes{1, 3, 4, 2, 0, 4}, Sizes{1, 3, 4, 2, 3, 0}})
    check(n, Dtype::f32, {});
}

TEST_CASE("softmax attention on cuda: more heads than a grid's second and third axis hold") {
  if (!cuda_available()) return;
  // Forward alone, as it takes long on the emulated device; all passes count their blocks in one place.
  const Tensor x = test::draw_on_cpu({257, 2, 256, 1}, 1, Dtype::f32), there = x.to(Device::cuda);
  CHECK(deviation(softmax_attention(there, there, there, {.causal = true}).value(),
                  softmax_attention(x, x, x, {.causal = true}).value()) < 1e-5);
}

TEST_CASE("softmax attention on cuda: one projection, and a band") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const int64_t time : {6, 70})
      for (const bool causal : {false, true}) {
        const Tensor qkv = test::draw_on_cpu({2, time, 3, 2, 5}, 1, dtype),
                     steps = test::draw_mask_on_cpu({2, time}, 2);
        check_both_devices({qkv}, [&](const std::vector<Variable>& x, Device device) {
          const KeyMask keys = KeyMask::array(steps.to(device));
          return softmax_attention_qkv(x[0], {.causal = causal, .keys = &keys});
        });
        for (const int64_t window : {0, 3, 33, 100})
          check_both_devices({qkv}, [&](const std::vector<Variable>& x, Device device) {
            const QueryMask queries = QueryMask::array(steps.to(device));
            return local_attention_qkv(x[0], {.window = window, .causal = causal, .queries = &queries});
          });
      }
}

TEST_CASE("softmax attention on cuda: steps, over a cache that grows and over a ring") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const auto& [dim, value_dim] : {std::pair<int64_t, int64_t>{3, 5}, {17, 300}}) {
      KeyValueCache cache[2];
      LocalCache ring[2];
      const KeyMask keys = KeyMask::lengths({1, 0});
      for (int64_t t = 0; t < (dim == 3 ? 40 : 3); ++t) {
        Tensor out[2], near[2], masked[2];
        for (const int i : {0, 1}) {
          const Device device = i ? Device::cuda : Device::cpu;
          const auto now = [&](int64_t width, uint64_t seed) {
            return test::draw_on_cpu({2, 3, width}, 3 * static_cast<uint64_t>(t) + seed, dtype).to(device);
          };
          const Tensor q = now(dim, 1), k = now(dim, 2), v = now(value_dim, 3);
          softmax_attention_step(q, k, v, cache[i], out[i]);
          local_attention_step(q, k, v, ring[i], near[i], {.window = 6});
          softmax_attention_query(q, cache[i], masked[i], {.keys = &keys});
        }
        CHECK(deviation(out[1], out[0]) < tolerance(dtype));
        CHECK(deviation(near[1], near[0]) < tolerance(dtype));
        CHECK(deviation(masked[1], masked[0]) < tolerance(dtype));
      }
    }
  KeyValueCache cache;
  Tensor out;
  const Tensor x = test::draw_on_cpu({2, 3, 4}, 1, Dtype::f32).to(Device::cuda);
  softmax_attention_step(x, x, x, cache, out);
  const Tensor here = x.to(Device::cpu);
  CHECK_THROWS_AS(softmax_attention_step(here, here, here, cache, out), Error);
}
