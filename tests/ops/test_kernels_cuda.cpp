// Each kernel of a GPU, in sizes of a few blocks, against the CPU: small enough to run under the thread sanitizer,
// which sees every race between two threads that both run.
#include "linnet/core/compute.h"
#include "linnet/linnet.h"
#include "support/both_devices.h"

using namespace linnet;
using test::check_both_devices;
using test::draw_on_cpu;

namespace {

using Leaves = std::vector<Variable>;

template <class Op>
void check(std::initializer_list<Shape> shapes, Op op) {
  if (!cuda_available()) return;
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) inputs.push_back(draw_on_cpu(shape, inputs.size() + 1));
  check_both_devices(inputs, [&](const Leaves& x, Device device) { return op(x, device); });
}

Tensor places(const Shape& shape, int32_t limit, Device device) {
  std::vector<int32_t> at(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < at.size(); ++i)
    at[i] = i % 3 == 0 ? 1 : static_cast<int32_t>(i * 7 % static_cast<size_t>(limit));
  return Tensor::from(at, shape, device);
}

}  // namespace

TEST_CASE("kernels on cuda: elementwise, rows side by side and repeated") {
  check({{3, 35}, {35}, {3, 1}}, [](const Leaves& x, Device) { return gelu(x[0] * x[1] + x[2]) / (square(x[2]) + 1); });
}

TEST_CASE("kernels on cuda: reductions of short rows, long rows and columns") {
  check({{2, 9}, {2, 40}, {2, 1100}, {1, 9000}, {600, 3}}, [](const Leaves& x, Device) {
    return sum(x[0]) + sum(x[1], {1}) + max(x[2], {1}) + mean(x[3]) + sum(x[4]) + sum(min(x[4], {0}));
  });
}

TEST_CASE("kernels on cuda: running sums of short rows, long rows and columns") {
  check({{40, 9}, {3, 40}, {2, 2100}, {70, 5}}, [](const Leaves& x, Device) {
    return sum(square(cumsum(x[0], 1))) + sum(square(cumsum(x[1], 1))) + mean(square(cumsum(x[2], 1, true))) +
           sum(square(cumsum(x[3], 0)));
  });
}

TEST_CASE("kernels on cuda: matrices turned, joined and multiplied") {
  check({{3, 40, 33}, {3, 40, 33}}, [](const Leaves& x, Device) {
    return matmul(transpose(x[0], 1, 2), concat({x[0], slice(x[1], 2, 0, 20)}, 2));
  });
}

TEST_CASE("kernels on cuda: rows of a table, and back: one row often, others once") {
  check({{9, 5}}, [](const Leaves& x, Device device) { return embedding(x[0], places({5, 30}, 9, device)); });
}

TEST_CASE("kernels on cuda: softmax and log_softmax by a thread, a warp and a block") {
  check({{3, 5}, {3, 40}, {2, 1100}}, [](const Leaves& x, Device) {
    return sum(softmax(x[0], 1)) + sum(square(log_softmax(x[1], 1))) + sum(square(softmax(x[2], 1)));
  });
}

TEST_CASE("kernels on cuda: cross-entropy") {
  check({{7, 40}}, [](const Leaves& x, Device device) {
    return cross_entropy(x[0], places({7}, 40, device), {.ignore_index = 1, .label_smoothing = 0.1});
  });
}

TEST_CASE("kernels on cuda: layer norm by a warp and a block, and its columns' sums") {
  check({{70, 35}, {35}, {35}, {3, 1100}, {1100}, {1100}}, [](const Leaves& x, Device) {
    return sum(square(layer_norm(x[0], x[1], x[2]))) + sum(square(layer_norm(x[3], x[4], x[5])));
  });
}

TEST_CASE("kernels on cuda: linear attention, causal in segments, and not causal") {
  check({{1, 300, 1, 5}, {1, 300, 1, 5}, {1, 300, 1, 35}},
        [](const Leaves& x, Device) { return linear_attention(x[0], x[1], x[2], {.causal = true}); });
  check({{1, 40, 2, 3}, {1, 35, 2, 3}, {1, 35, 2, 4}},
        [](const Leaves& x, Device) { return linear_attention(x[0], x[1], x[2]); });
}

TEST_CASE("kernels on cuda: linear attention from a state to a state, and its step") {
  check({{1, 70, 2, 3, 4}, {1, 2, 4, 4}}, [](const Leaves& x, Device) {
    const Variable q = reshape(slice(x[0], 3, 0, 1), {1, 70, 2, 4}), k = reshape(slice(x[0], 3, 1, 2), {1, 70, 2, 4}),
                   v = reshape(slice(x[0], 3, 2, 3), {1, 70, 2, 4});
    const auto [out, state] = linear_attention_with_state(q, k, v, {x[1], square(mean(x[1], {3}))});
    return sum(out) + sum(square(state.s));
  });
  if (!cuda_available()) return;
  Tensor out[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    LinearState state;
    const Tensor q = draw_on_cpu({3, 2, 35}, 1).to(device);
    for (int t = 0; t < 2; ++t) linear_attention_step(q, q, q, state, out[static_cast<int>(device)]);
  }
  CHECK(test::deviation(out[1], out[0]) < 1e-5);
}

TEST_CASE("kernels on cuda: linear attention on tensor cores, of rows up to 64 wide and up to 128") {
  if (!cuda_available()) return;
  for (const int64_t width : {5, 70})
    for (const bool causal : {true, false}) {
      const std::vector<Tensor> x{draw_on_cpu({1, 150, 1, 5}, 1), draw_on_cpu({1, 150, 1, 5}, 2),
                                  draw_on_cpu({1, 150, 1, width}, 3)};
      const auto op = [&](const Leaves& leaves, Device) {
        return linear_attention(leaves[0], leaves[1], leaves[2], {.causal = causal, .precision = Precision::bf16});
      };
      const std::vector<Tensor> wanted = test::run_on(Device::cpu, x, op), given = test::run_on(Device::cuda, x, op);
      for (size_t i = 0; i < wanted.size(); ++i) CHECK(test::deviation(given[i], wanted[i]) < 0.02);
    }
}

TEST_CASE("kernels on cuda: softmax attention in small and large tiles, and its step") {
  check({{1, 70, 1, 5}, {1, 70, 1, 5}, {1, 70, 1, 35}},
        [](const Leaves& x, Device) { return softmax_attention(x[0], x[1], x[2], {.causal = true}); });
  check({{1, 9, 2, 3}, {1, 20, 2, 3}, {1, 20, 2, 4}},
        [](const Leaves& x, Device) { return softmax_attention(x[0], x[1], x[2]); });
  if (!cuda_available()) return;
  Tensor out[2];
  for (const Device device : {Device::cpu, Device::cuda}) {
    KeyValueCache cache;
    const Tensor q = draw_on_cpu({3, 2, 35}, 1).to(device);
    for (int t = 0; t < 3; ++t) softmax_attention_step(q, q, q, cache, out[static_cast<int>(device)]);
  }
  CHECK(test::deviation(out[1], out[0]) < 1e-5);
}

TEST_CASE("kernels on cuda: LSH attention, few steps and many") {
  for (const int64_t time : {20, 600}) {
    check({{1, time, 1, 4}, {1, time, 1, 4}, {1, time, 1, 3}}, [&](const Leaves& x, Device device) {
      const Tensor rotations = draw_on_cpu({4, 2, 2}, 7).to(device);
      const LshAttentionOptions options{.buckets = 4, .chunk = 16, .rounds = 2, .rotations = &rotations};
      return lsh_attention(x[0], x[1], x[2], options);
    });
  }
}

TEST_CASE("kernels on cuda: clustered attention and its clusters") {
  for (const int64_t topk : {0, 3}) {
    check({{1, 9, 1, 4}, {1, 20, 1, 4}, {1, 20, 1, 3}}, [&](const Leaves& x, Device device) {
      const Tensor planes = draw_on_cpu({5, 8}, 7).to(device);
      return clustered_attention(x[0], x[1], x[2], {.clusters = 3, .topk = topk, .bits = 8, .planes = &planes});
    });
  }
}

TEST_CASE("kernels on cuda: sampling, with ties") {
  if (!cuda_available()) return;
  for (const int64_t classes : {70, 1100}) {
    std::vector<int32_t> tokens[2];
    for (const Device device : {Device::cpu, Device::cuda}) {
      const Tensor logits = draw_on_cpu({2, classes}, 3).to(Dtype::i32).to(Dtype::f32).to(device);
      Generator generator;
      for (const models::SamplingOptions& options : {models::SamplingOptions{}, {.top_k = 9, .top_p = 0.7}})
        for (const int32_t token : models::sample_logits(logits, options, generator).to_vector<int32_t>())
          tokens[static_cast<int>(device)].push_back(token);
    }
    CHECK(tokens[1] == tokens[0]);
  }
}

TEST_CASE("kernels on cuda: features") {
  check({{40, 5}}, [](const Leaves& x, Device device) {
    const Tensor w = draw_on_cpu({3, 5}, 7).to(device);
    return sum(polynomial_features(x[0])) + sum(fourier_features(x[0], w)) + sum(favor_features(x[0], w));
  });
}
