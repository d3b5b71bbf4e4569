#include "linnet/nn/attention.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/shape_ops.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::deviation;
using test::message_of;
using test::time_step;

namespace {

constexpr AttentionKind kKinds[] = {AttentionKind::linear, AttentionKind::softmax};

struct Net : nn::Model {
  nn::Attention attention;
  Net(AttentionKind kind, bool causal, int64_t dim = 12)
      : attention(*this, "attention", {.dim = dim, .heads = 3, .causal = causal, .kind = kind}) {
    test::randomise(*this, 0.5);
  }
};

/// Steps begin .. end-1 of x, one after the other: (batch, end - begin, dim).
Tensor steps(const nn::Attention& attention, const Tensor& x, int64_t begin, int64_t end, nn::AttentionState& state) {
  std::vector<Variable> all;
  for (int64_t t = begin; t < end; ++t) all.push_back(attention.step(time_step(x, t), state));
  return stack(all, 1).value();
}

}  // namespace

TEST_CASE("attention: the recurrent form equals the parallel one") {
  for (const AttentionKind kind : kKinds) {
    CAPTURE(nn::name(kind));
    Net net(kind, true);
    const Tensor x = test::normal({2, 33, 12});
    const Tensor y = net.attention(x).value();
    auto state = net.attention.make_state(2, 4);  // grows
    CHECK(deviation(steps(net.attention, x, 0, 33, state), y) < 1e-5);
  }
}

TEST_CASE("attention: it is out(op(qkv(x))), the three parts head by head") {
  for (const AttentionKind kind : kKinds) {
    for (const bool causal : {false, true}) {
      CAPTURE(nn::name(kind));
      CAPTURE(causal);
      Net net(kind, causal);
      const Tensor x = test::normal({2, 7, 12});
      std::vector<Variable> parts;
      for (const Variable& part : split(net.attention.qkv(x), 3, -1)) parts.push_back(reshape(part, {2, 7, 3, 4}));
      const Variable o = kind == AttentionKind::linear
                             ? linear_attention(parts[0], parts[1], parts[2], {.causal = causal})
                             : softmax_attention(parts[0], parts[1], parts[2], {.causal = causal, .scale = {}});
      CHECK(deviation(net.attention(x).value(), net.attention.out(reshape(o, {2, 7, 12})).value()) < 1e-6);
    }
  }
}

TEST_CASE("attention: samples do not see each other, and lengths may change between calls") {
  for (const AttentionKind kind : kKinds) {
    for (const bool causal : {false, true}) {
      CAPTURE(nn::name(kind));
      CAPTURE(causal);
      Net net(kind, causal);
      for (const int64_t time : {32, 16, 1}) {
        const Tensor x = test::normal({3, time, 12});
        const Tensor y = net.attention(x).value();
        for (int64_t b = 0; b < 3; ++b) {
          const Tensor alone = net.attention(x.slice(b, b + 1)).value();
          CHECK(deviation(alone, y.slice(b, b + 1)) < 1e-5);
        }
      }
    }
  }
}

TEST_CASE("attention: a padded sample gives what it gives alone") {
  const std::vector<int32_t> lengths{9, 4, 1};
  const KeyMask keys = KeyMask::lengths(lengths);
  for (const AttentionKind kind : kKinds) {
    for (const bool causal : {false, true}) {
      CAPTURE(nn::name(kind));
      CAPTURE(causal);
      Net net(kind, causal);
      const Tensor x = test::normal({3, 9, 12});
      const Tensor y = net.attention(x, &keys).value();
      for (int64_t b = 0; b < 3; ++b) {
        const int64_t length = lengths[static_cast<size_t>(b)];
        const Tensor alone = net.attention(test::sample(x, b, length)).value();
        CHECK(deviation(test::sample(y, b, length), alone) < 1e-5);
      }
    }
  }
}

TEST_CASE("attention: a copy of a state goes its own way") {
  for (const AttentionKind kind : kKinds) {
    CAPTURE(nn::name(kind));
    Net net(kind, true);
    const Tensor x = test::normal({2, 20, 12}), other = test::normal({2, 20, 12}, 8);
    const Tensor y = net.attention(x).value();
    auto state = net.attention.make_state(2);
    steps(net.attention, x, 0, 10, state);
    nn::AttentionState copy = state;
    steps(net.attention, other, 10, 20, copy);
    CHECK(deviation(steps(net.attention, x, 10, 20, state), compute::slice(y, 1, 10, 20)) < 1e-5);
  }
}

TEST_CASE("attention: a state can be saved, and goes on where it was") {
  test::TemporaryFile file("attention_state.safetensors");
  for (const AttentionKind kind : kKinds) {
    CAPTURE(nn::name(kind));
    Net net(kind, true);
    const Tensor x = test::normal({2, 12, 12});
    auto state = net.attention.make_state(2);
    steps(net.attention, x, 0, 5, state);
    save_safetensors(file.path(), state.state_dict());
    const Tensor expected = steps(net.attention, x, 5, 12, state);
    auto loaded = net.attention.make_state(2);
    loaded.load_state_dict(load_safetensors(file.path()));
    CHECK(test::same_bits(steps(net.attention, x, 5, 12, loaded), expected));

    auto wrong = net.attention.make_state(3);
    CHECK_THROWS_WITH(wrong.load_state_dict(load_safetensors(file.path())),
                      doctest::Contains("does not fit the layer"));
    CHECK_THROWS_WITH(wrong.load_state_dict(StateDict()), doctest::Contains("kind"));
    const auto other = kind == AttentionKind::linear ? AttentionKind::softmax : AttentionKind::linear;
    auto stranger = Net(other, true).attention.make_state(2);
    CHECK(message_of([&] { stranger.load_state_dict(load_safetensors(file.path())); }) ==
          std::string("attention state: kind ") + nn::name(kind) + " given, this one is " + nn::name(other));
    CHECK(message_of([&] { net.attention.step(time_step(x, 0), stranger); }) ==
          std::string("Attention attention: a state of kind ") + nn::name(other) + " given, this layer is " +
              nn::name(kind));
  }
}

TEST_CASE("attention: samples of a state can be chosen, doubled and reordered") {
  for (const AttentionKind kind : kKinds) {
    CAPTURE(nn::name(kind));
    Net net(kind, true);
    const Tensor x = test::normal({2, 6, 12});
    auto state = net.attention.make_state(2);
    steps(net.attention, x, 0, 5, state);
    const Tensor order = Tensor::from<int32_t>({1, 0, 1}, {3});
    auto chosen = state.select(order);
    const Tensor x_t = time_step(x, 5);
    const Tensor y = net.attention.step(x_t, state).value();
    const Tensor expected = compute::gather_rows("test", y, order);
    CHECK(deviation(net.attention.step(compute::gather_rows("test", x_t, order), chosen).value(), expected) < 1e-6);
    CHECK_THROWS_AS(state.select(Tensor::from<int32_t>({2}, {1})), Error);
  }
}

TEST_CASE("attention: options reach the op") {
  nn::Model root;
  const Tensor x = test::normal({1, 5, 4});
  nn::Attention plain(root, "plain", {.dim = 4, .heads = 1, .causal = true, .bias = false});
  nn::Attention eps(root, "eps", {.dim = 4, .heads = 1, .causal = true, .eps = 0.5, .bias = false});
  nn::Attention relu(root, "relu",
                     {.dim = 4, .heads = 1, .causal = true, .feature_map = FeatureMap::relu, .bias = false});
  CHECK(plain.parameter_count() == 4 * 16);
  for (nn::Attention* layer : {&eps, &relu}) {
    layer->load_state_dict(plain.state_dict());
    CHECK(deviation((*layer)(x).value(), plain(x).value()) > 1e-3);
    auto state = layer->make_state(1);
    CHECK(deviation(steps(*layer, x, 0, 5, state), (*layer)(x).value()) < 1e-5);
  }
}

TEST_CASE("attention: errors name the layer") {
  Net net(AttentionKind::linear, true), open(AttentionKind::linear, false);
  CHECK(message_of([&] { nn::Attention(net, "bad", {.dim = 10, .heads = 4}); }) ==
        "Attention bad: dim 10 cannot be divided among 4 heads");
  CHECK_THROWS_WITH(nn::Attention(net, "bad", {.dim = 10, .heads = 0}), doctest::Contains("Attention bad: "));
  CHECK(message_of([&] {
          net.attention(Tensor::zeros({2, 3, 11}));
        }) == "Attention attention: input (2, 3, 11) is not (batch, time, 12)");
  CHECK_THROWS_WITH(net.attention(Tensor::zeros({2, 3, 12}, Dtype::f64)), doctest::Contains("linear: "));
  const KeyMask keys = KeyMask::lengths({3, 3, 3});
  CHECK_THROWS_WITH(net.attention(Tensor::zeros({2, 3, 12}), &keys), doctest::Contains("linear_attention_qkv: "));

  auto state = net.attention.make_state(2);
  CHECK(message_of([&] {
          net.attention.step(Tensor::zeros({2, 1, 12}), state);
        }) == "Attention attention: input (2, 1, 12) is not (batch, 12), one step");
  CHECK_THROWS_WITH(net.attention.step(Tensor::zeros({3, 12}), state),
                    "Attention attention: state s f32 (2, 3, 4, 4) given, f32 (3, 3, 4, 4) wanted");
  CHECK(message_of([&] {
          open.attention.step(Tensor::zeros({2, 12}), state);
        }) == "Attention attention: only causal attention can go step by step; set .causal = true");
  Tape tape;
  CHECK(message_of([&] {
          net.attention.step(Tensor::zeros({2, 12}), state);
        }) ==
        "Attention attention: step changes its state in place, which a tape cannot replay; call it outside of the "
        "Tape's scope or under Tape::Pause");
  Tape::Pause pause;
  CHECK(net.attention.step(Tensor::zeros({2, 12}), state).shape() == Shape{2, 12});
}

TEST_CASE("attention: a dim beyond every memory and an eps that is no number are refused") {
  nn::Model root;
  CHECK_THROWS_WITH(nn::Attention(root, "a", {.dim = int64_t{1} << 62, .heads = 2}),
                    doctest::Contains("Attention a: dim 4611686018427387904 given, at most"));
  CHECK_THROWS_WITH(nn::Attention(root, "a", {.dim = 4, .heads = 2, .eps = std::nan("")}),
                    doctest::Contains("Attention a: eps nan given"));
}

TEST_CASE("attention: a state that is not this layer's is refused, by step and when loaded") {
  nn::Model root;
  for (const auto kind : {nn::AttentionKind::linear, nn::AttentionKind::softmax}) {
    nn::Attention layer(root, nn::name(kind), {.dim = 4, .heads = 2, .causal = true, .kind = kind});
    auto three = layer.make_state(3), state = layer.make_state(2);
    const Tensor x = Tensor::zeros({2, 4});
    CHECK_THROWS_WITH(layer.step(x, three), doctest::Contains(" wanted"));
    layer.step(x, state);
    const StateDict saved = state.state_dict();
    StateDict wide, more = saved;
    for (const auto& [name, value] : saved.tensors()) wide.set(name, value.to(Dtype::f64));
    wide.set_text("kind", nn::name(kind));
    more.set("q", x);
    CHECK_THROWS_WITH(state.load_state_dict(wide), doctest::Contains("is f64, this one is f32"));
    CHECK_THROWS_WITH(state.load_state_dict(more), doctest::Contains("unexpected: q"));
    CHECK_THROWS_WITH(state.select(Tensor::zeros({2, 2}, Dtype::i32)), doctest::Contains("are not i32 (n)"));
    state.load_state_dict(saved);
  }
}
