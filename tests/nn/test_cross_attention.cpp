#include "linnet/nn/cross_attention.h"

#include <doctest/doctest.h>

#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/efficient_attention.h"
#include "linnet/ops/shape_ops.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::AttentionCase;
using test::deviation;
using test::for_each_cross;
using test::message_of;
using test::time_step;

namespace {

struct Net : nn::Model {
  nn::CrossAttention cross;
  explicit Net(const AttentionCase& each)
      : cross(*this, "cross",
              {.dim = 12,
               .heads = 3,
               .memory_dim = 10,
               .kind = each.kind,
               .eps = each.eps,
               .feature_map = each.features}) {
    test::randomise(*this, each.weights);
  }
  explicit Net(AttentionKind kind) : Net(AttentionCase{nn::name(kind), kind}) {}
};

/// All queries of x, one after the other.
Tensor steps(const nn::CrossAttention& cross, const Tensor& x, const nn::CrossState& state) {
  std::vector<Variable> all;
  for (int64_t t = 0; t < x.size(1); ++t) all.push_back(cross.step(time_step(x, t), state));
  return stack(all, 1).value();
}

}  // namespace

TEST_CASE("cross attention: it is out(op(q(x), kv(memory))), head by head") {
  for_each_cross([&](const AttentionCase& each) {
    Net net(each);
    CHECK(net.cross.q.weight.shape() == Shape{12, 12});
    CHECK(net.cross.kv.weight.shape() == Shape{24, 10});
    CHECK(net.state_dict().has("cross.kv.bias"));
    const Tensor x = test::normal({2, 5, 12}), memory = test::normal({2, 7, 10}, 4);
    const std::vector<Variable> kv = split(net.cross.kv(memory), 2, -1);
    const Variable q = reshape(net.cross.q(x), {2, 5, 3, 4}), k = reshape(kv[0], {2, 7, 3, 4}),
                   v = reshape(kv[1], {2, 7, 3, 4});
    const auto op = [&]() -> Variable {
      if (each.kind == AttentionKind::softmax) return softmax_attention(q, k, v);
      if (each.kind == AttentionKind::efficient) return efficient_attention(q, k, v);
      if (!net.cross.features) return linear_attention(q, k, v);
      return linear_attention(net.cross.features->of_queries(q), net.cross.features->of_keys(k), v,
                              {.feature_map = FeatureMap::identity, .eps = each.eps});
    };
    CHECK(deviation(net.cross(x, memory).value(), net.cross.out(reshape(op(), {2, 5, 12})).value()) < 1e-6);
  });
}

TEST_CASE("cross attention: its weights are those that its output is made with") {
  const KeyMask keys = KeyMask::lengths({7, 3});
  for_each_cross([&](const AttentionCase& each) {
    Net net(each);
    const Tensor x = test::normal({2, 5, 12}), memory = test::normal({2, 7, 10}, 4);
    const Tensor weights = net.cross.weights(x, memory, &keys);
    CHECK(weights.shape() == Shape{2, 5, 3, 7});
    const Tensor v = reshape(split(net.cross.kv(memory), 2, -1)[1], {2, 7, 3, 4}).value();
    // (batch, heads, time, ...)
    const Tensor o = compute::matmul(compute::transpose(weights, 1, 2), compute::transpose(v, 1, 2));
    const Tensor heads = compute::transpose(o, 1, 2).reshape({2, 5, 12});
    CHECK(deviation(net.cross(x, memory, &keys).value(), net.cross.out(heads).value()) < 1e-5);
    Tape tape;
    CHECK(message_of([&] { net.cross.weights(x, memory); }) ==
          "CrossAttention cross: weights is not recorded, and gradients would be lost; call it outside of the Tape's "
          "scope or under Tape::Pause");
  });
}

TEST_CASE("cross attention: the recurrent form equals the parallel one, with and without padding") {
  const KeyMask keys = KeyMask::lengths({19, 6, 0});
  for_each_cross([&](const AttentionCase& each) {
    for (const KeyMask* mask : {static_cast<const KeyMask*>(nullptr), &keys}) {
      CAPTURE(mask != nullptr);
      Net net(each);
      const Tensor x = test::normal({3, 9, 12}), memory = test::normal({3, 19, 10}, 4);
      const nn::CrossState state = net.cross.encode(memory, mask);
      CHECK(deviation(steps(net.cross, x, state), net.cross(x, memory, mask).value()) < 1e-5);
    }
  });
}

TEST_CASE("cross attention: a padded memory gives what it gives alone; NaN in the padding changes nothing") {
  const std::vector<int32_t> lengths{9, 4, 1};
  const KeyMask keys = KeyMask::lengths(lengths);
  for_each_cross([&](const AttentionCase& each) {
    Net net(each);
    const Tensor x = test::normal({3, 6, 12});
    Tensor memory = test::normal({3, 9, 10}, 4);
    memory.slice(1, 2).reshape({9, 10}).slice(4, 9).fill(std::nan(""));
    const Tensor y = net.cross(x, memory, &keys).value();
    const Tensor by_steps = steps(net.cross, x, net.cross.encode(memory, &keys));
    for (int64_t b = 0; b < 3; ++b) {
      const Tensor alone = test::sample(memory, b, lengths[static_cast<size_t>(b)]);
      const Tensor wanted = net.cross(test::sample(x, b, 6), alone).value();
      CHECK(deviation(y.slice(b, b + 1), wanted) < 1e-5);
      CHECK(deviation(by_steps.slice(b, b + 1), wanted) < 1e-5);
    }
  });
}

TEST_CASE("cross attention: gradients of both inputs and of every parameter, a sample with no key included") {
  const KeyMask keys = KeyMask::lengths({4, 0});
  for_each_cross([&](const AttentionCase& each) {
    nn::Model root;
    nn::CrossAttention cross(
        root, "cross",
        {.dim = 4, .heads = 2, .memory_dim = 3, .kind = each.kind, .eps = each.eps, .feature_map = each.features});
    test::randomise(root, 0.5);
    root.to(Dtype::f64);
    const std::vector<Variable*> used{&cross.q.weight, &cross.q.bias,     &cross.kv.weight,
                                      &cross.kv.bias,  &cross.out.weight, &cross.out.bias};
    REQUIRE(used.size() == root.parameters().size());
    std::vector<Tensor> inputs{test::normal({2, 3, 4}, 3, Dtype::f64), test::normal({2, 4, 3}, 4, Dtype::f64)};
    for (const Variable* p : used) inputs.push_back(p->value());
    CHECK_NOTHROW(gradcheck(
        [&](const std::vector<Variable>& leaves) {
          for (size_t i = 0; i < used.size(); ++i) *used[i] = leaves[i + 2];
          return cross(leaves[0], leaves[1], &keys);
        },
        inputs));
  });
}

TEST_CASE("cross attention: the state of linear kind does not grow with the memory") {
  Net net(AttentionKind::linear);
  for (const int64_t time : {1, 50}) {
    const nn::CrossState state = net.cross.encode(test::normal({2, time, 10}));
    CHECK(state.memory.linear.s.shape() == Shape{2, 3, 4, 4});
    CHECK(state.memory.linear.z.shape() == Shape{2, 3, 4});
    CHECK_FALSE(state.memory.softmax.k.defined());
  }
}

TEST_CASE("cross attention: a state can be saved, chosen from, and is not changed by steps") {
  test::TemporaryFile file("cross_state.safetensors");
  const KeyMask keys = KeyMask::lengths({8, 3});
  for_each_cross([&](const AttentionCase& each) {
    Net net(each);
    const Tensor x = test::normal({2, 4, 12}), memory = test::normal({2, 8, 10}, 4);
    const nn::CrossState state = net.cross.encode(memory, &keys);
    const Tensor y = steps(net.cross, x, state);
    CHECK(test::same_bits(steps(net.cross, x, state), y));

    save_safetensors(file.path(), state.state_dict());
    nn::CrossState loaded = net.cross.encode(test::normal({2, 5, 10}));  // of another length, without a mask
    loaded.load_state_dict(load_safetensors(file.path()));
    CHECK(test::same_bits(steps(net.cross, x, loaded), y));

    const Tensor order = Tensor::from<int32_t>({1, 0, 1}, {3});
    const Tensor chosen = steps(net.cross, compute::gather_rows("test", x, order), state.select(order));
    CHECK(deviation(chosen, compute::gather_rows("test", y, order)) < 1e-6);

    nn::CrossState three = net.cross.encode(test::normal({3, 5, 10}));
    const StateDict before = three.state_dict();
    CHECK_THROWS_WITH(three.load_state_dict(load_safetensors(file.path())), doctest::Contains("does not fit"));
    CHECK(three.state_dict().tensors().size() == before.tensors().size());
    StateDict more = state.state_dict();
    more.set("x", memory);
    CHECK_THROWS_WITH(loaded.load_state_dict(more), doctest::Contains("unexpected: x"));
  });
  Net net(AttentionKind::softmax);
  nn::CrossState state = net.cross.encode(test::normal({2, 8, 10}), &keys);
  StateDict wrong = net.cross.encode(test::normal({2, 8, 10})).state_dict();
  wrong.set("keys", Tensor::zeros({2, 7}, Dtype::u8));
  CHECK(message_of([&] { state.load_state_dict(wrong); }) ==
        "cross attention state: keys (2, 7) u8 do not belong to k (2, 8, 3, 4), u8 (batch, time) wanted");
}

TEST_CASE("cross attention: empty batches, queries and memories") {
  for_each_cross([&](const AttentionCase& each) {
    Net net(each);
    CHECK(net.cross(Tensor::zeros({0, 3, 12}), Tensor::zeros({0, 5, 10})).shape() == Shape{0, 3, 12});
    CHECK(net.cross(Tensor::zeros({2, 0, 12}), Tensor::zeros({2, 5, 10})).shape() == Shape{2, 0, 12});
    const Tensor none = Tensor::zeros({2, 0, 10}), x = test::normal({2, 3, 12});
    const Tensor y = net.cross(x, none).value();  // the heads give 0: the bias is left
    CHECK(deviation(time_step(y, 1), broadcast_to(net.cross.out.bias, {2, 12}).value()) == 0);
    CHECK(deviation(steps(net.cross, x, net.cross.encode(none)), y) < 1e-6);
  });
}

TEST_CASE("cross attention: errors name the layer") {
  Net net(AttentionKind::linear), other(AttentionKind::softmax);
  const Tensor x = Tensor::zeros({2, 3, 12}), memory = Tensor::zeros({2, 5, 10});
  CHECK(message_of([&] { nn::CrossAttention(net, "bad", {.dim = 10, .heads = 4}); }) ==
        "CrossAttention bad: dim 10 cannot be divided among 4 heads");
  CHECK(message_of([&] { nn::CrossAttention(net, "bad", {.dim = 4, .heads = 2, .kind = AttentionKind::local}); }) ==
        "CrossAttention bad: local attention given, whose window is of steps of one sequence; linear, softmax or "
        "efficient wanted");
  CHECK_THROWS_WITH(nn::CrossAttention(net, "bad", {.dim = int64_t{1} << 62, .heads = 2}),
                    doctest::Contains("CrossAttention bad"));
  CHECK(message_of([&] {
          net.cross(Tensor::zeros({2, 3, 11}), memory);
        }) == "CrossAttention cross: input (2, 3, 11) is not (batch, time, 12)");
  CHECK(message_of([&] { net.cross(x, x); }) == "CrossAttention cross: memory (2, 3, 12) is not (batch, time, 10)");
  CHECK(message_of([&] {
          net.cross(x, Tensor::zeros({3, 5, 10}));
        }) == "CrossAttention cross: input (2, 3, 12) and memory (3, 5, 10) differ in batch");
  const KeyMask keys = KeyMask::lengths({3, 3, 3});
  CHECK_THROWS_WITH(net.cross(x, memory, &keys), doctest::Contains("linear_attention: "));
  CHECK_THROWS_WITH(other.cross.encode(memory, &keys), doctest::Contains("key mask has 3 lengths"));

  const nn::CrossState state = net.cross.encode(memory), strange = other.cross.encode(memory);
  const Tensor x_t = Tensor::zeros({2, 12});
  CHECK(message_of([&] { net.cross.step(x_t, strange); }) ==
        "CrossAttention cross: a state of kind softmax given, this layer is linear");
  CHECK(message_of([&] { net.cross.step(x_t, {}); }) ==
        "CrossAttention cross: a state without a memory given; encode makes one");
  CHECK(message_of([&] {
          net.cross.step(Tensor::zeros({3, 12}), state);
        }) == "CrossAttention cross: state s f32 (2, 3, 4, 4) given, f32 (3, 3, 4, 4) wanted");
  CHECK_THROWS_WITH(other.cross.step(Tensor::zeros({3, 12}), strange), doctest::Contains("state k f32 (2, 5, 3, 4)"));
  CHECK_THROWS_WITH(net.cross.step(Tensor::zeros({2, 1, 12}), state), doctest::Contains("one step"));
  Tape tape;
  for (const Net* each : {&net, &other}) {
    CHECK(message_of([&] { each->cross.encode(memory); }) ==
          "CrossAttention cross: encode is not recorded, and gradients would be lost; call it outside of the Tape's "
          "scope or under Tape::Pause");
    CHECK_THROWS_WITH(each->cross.step(x_t, state), doctest::Contains("step is not recorded"));
  }
}
