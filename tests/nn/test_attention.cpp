#include "linnet/nn/attention.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/efficient_attention.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "linnet/ops/shape_ops.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::AttentionCase;
using test::deviation;
using test::for_each_attention;
using test::for_each_causal;
using test::message_of;
using test::time_step;

namespace {

struct Net : nn::Model {
  nn::Attention attention;
  Net(const AttentionCase& each, bool causal)
      : attention(*this, "attention",
                  {.dim = 12,
                   .heads = 3,
                   .causal = causal,
                   .kind = each.kind,
                   .window = test::kWindow,
                   .eps = each.eps,
                   .feature_map = each.features}) {
    test::randomise(*this, each.weights);
  }
  Net(AttentionKind kind, bool causal) : Net(AttentionCase{nn::name(kind), kind}, causal) {}
};

/// Steps begin .. end-1 of x, one after the other: (batch, end - begin, dim).
Tensor steps(const nn::Attention& attention, const Tensor& x, int64_t begin, int64_t end, nn::AttentionState& state) {
  std::vector<Variable> all;
  for (int64_t t = begin; t < end; ++t) all.push_back(attention.step(time_step(x, t), state));
  return stack(all, 1).value();
}

}  // namespace

TEST_CASE("attention: the recurrent form equals the parallel one") {
  for_each_causal([&](const AttentionCase& each) {
    Net net(each, true);
    const Tensor x = test::normal({2, 33, 12});
    const Tensor y = net.attention(x).value();
    auto state = net.attention.make_state(2, 4);  // grows
    CHECK(deviation(steps(net.attention, x, 0, 33, state), y) < 1e-5);
  });
}

TEST_CASE("attention: it is out(op(qkv(x))), the three parts head by head") {
  for_each_attention([](const AttentionCase& each, bool causal) {
    Net net(each, causal);
    const Tensor x = test::normal({2, 7, 12});
    std::vector<Variable> parts;
    for (const Variable& part : split(net.attention.qkv(x), 3, -1)) parts.push_back(reshape(part, {2, 7, 3, 4}));
    const auto& [q, k, v] = std::tie(parts[0], parts[1], parts[2]);
    const auto op = [&]() -> Variable {
      switch (each.kind) {
        case AttentionKind::softmax:
          return softmax_attention(q, k, v, {.causal = causal, .scale = {}});
        case AttentionKind::local:
          return local_attention(q, k, v, {.window = test::kWindow, .causal = causal});
        case AttentionKind::efficient:
          return efficient_attention(q, k, v);
        case AttentionKind::linear:
          break;
      }
      if (!net.attention.features) return linear_attention(q, k, v, {.causal = causal});
      return linear_attention(net.attention.features->of_queries(q), net.attention.features->of_keys(k), v,
                              {.feature_map = FeatureMap::identity, .causal = causal, .eps = each.eps});
    };
    CHECK(deviation(net.attention(x).value(), net.attention.out(reshape(op(), {2, 7, 12})).value()) < 1e-6);
  });
}

TEST_CASE("attention: samples do not see each other, and lengths may change between calls") {
  for_each_attention([&](const AttentionCase& each, bool causal) {
    Net net(each, causal);
    for (const int64_t time : {32, 16, 1}) {
      const Tensor x = test::normal({3, time, 12});
      const Tensor y = net.attention(x).value();
      for (int64_t b = 0; b < 3; ++b) {
        const Tensor alone = net.attention(x.slice(b, b + 1)).value();
        CHECK(deviation(alone, y.slice(b, b + 1)) < 1e-5);
      }
    }
  });
}

TEST_CASE("attention: a padded sample gives what it gives alone") {
  const std::vector<int32_t> lengths{9, 4, 1};
  const KeyMask keys = KeyMask::lengths(lengths);
  for_each_attention([&](const AttentionCase& each, bool causal) {
    Net net(each, causal);
    const Tensor x = test::normal({3, 9, 12});
    const Tensor y = net.attention(x, &keys).value();
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      const Tensor alone = net.attention(test::sample(x, b, length)).value();
      CHECK(deviation(test::sample(y, b, length), alone) < 1e-5);
    }
  });
}

TEST_CASE("attention: no key, no time, no sample: the heads give 0, and gradients stay finite") {
  const KeyMask keys = KeyMask::lengths({0, 4});
  for_each_attention([&](const AttentionCase& each, bool causal) {
    Net net(each, causal);
    CHECK(net.attention(Tensor::zeros({2, 0, 12})).shape() == Shape{2, 0, 12});
    CHECK(net.attention(Tensor::zeros({0, 5, 12})).shape() == Shape{0, 5, 12});
    Tape tape;
    Variable x = Variable::leaf(test::normal({2, 5, 12}));
    const Variable y = net.attention(x, &keys);
    for (int64_t t = 0; t < 5; ++t)  // the bias is left
      CHECK(
          test::same_bits(test::time_step(y.value().slice(0, 1), t), net.attention.out.bias.value().reshape({1, 12})));
    tape.backward(sum(square(y)));
    CHECK(compute::all_finite(x.grad()));
    for (const Variable& parameter : net.parameters()) CHECK(compute::all_finite(parameter.grad()));
  });
}

TEST_CASE("attention: a causal kind does not see what comes later, bit for bit") {
  for_each_causal([](const AttentionCase& each) {
    Net net(each, true);
    const Tensor x = test::normal({1, 9, 12});
    const Tensor y = net.attention(x).value();
    for (const int64_t t : {1, 4, 8}) {
      Tensor other = x.clone();
      other.reshape({9, 12}).slice(t, t + 1).fill(50);  // far beyond every other, for what takes a maximum
      const Tensor changed = net.attention(other).value();
      CHECK(test::same_bits(test::sample(changed, 0, t), test::sample(y, 0, t)));
      CHECK_FALSE(test::same_bits(time_step(changed, t), time_step(y, t)));
    }
  });
}

TEST_CASE("attention: a window over the whole sequence is softmax attention, and a state of it has no more steps") {
  nn::Model root;
  for (const bool causal : {true, false}) {
    const std::string end = causal ? "_causal" : "";
    nn::Attention wide(root, "wide" + end,
                       {.dim = 12, .heads = 3, .causal = causal, .kind = AttentionKind::local, .window = 8});
    nn::Attention all(root, "all" + end, {.dim = 12, .heads = 3, .causal = causal, .kind = AttentionKind::softmax});
    test::randomise(wide, 0.5);
    all.load_state_dict(wide.state_dict());
    const Tensor x = test::normal({2, 9, 12});
    CHECK(deviation(wide(x).value(), all(x).value()) < 1e-6);
  }
  Net net(AttentionKind::local, true);
  for (const int64_t capacity : {0, 2, 100}) {
    auto state = net.attention.make_state(2, capacity);
    steps(net.attention, test::normal({2, 20, 12}), 0, 20, state);
    CHECK(state.local.ring.length == test::kWindow + 1);
    CHECK(state.local.ring.k.size(1) == test::kWindow + 1);
  }
}

TEST_CASE("attention: a copy of a state goes its own way") {
  for_each_causal([&](const AttentionCase& each) {
    Net net(each, true);
    const Tensor x = test::normal({2, 20, 12}), other = test::normal({2, 20, 12}, 8);
    const Tensor y = net.attention(x).value();
    auto state = net.attention.make_state(2);
    steps(net.attention, x, 0, 10, state);
    nn::AttentionState copy = state;
    steps(net.attention, other, 10, 20, copy);
    CHECK(deviation(steps(net.attention, x, 10, 20, state), compute::slice(y, 1, 10, 20)) < 1e-5);
  });
}

TEST_CASE("attention: a state can be saved, and goes on where it was") {
  test::TemporaryFile file("attention_state.safetensors");
  for_each_causal([&](const AttentionCase& each) {
    Net net(each, true);
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
    const auto kind = each.kind, other = kind == AttentionKind::linear ? AttentionKind::softmax : AttentionKind::linear;
    auto stranger = Net(other, true).attention.make_state(2);
    CHECK(message_of([&] { stranger.load_state_dict(load_safetensors(file.path())); }) ==
          std::string("attention state: kind ") + nn::name(kind) + " given, this one is " + nn::name(other));
    CHECK(message_of([&] { net.attention.step(time_step(x, 0), stranger); }) ==
          std::string("Attention attention: a state of kind ") + nn::name(other) + " given, this layer is " +
              nn::name(kind));
  });
}

TEST_CASE("attention: samples of a state can be chosen, doubled and reordered") {
  for_each_causal([&](const AttentionCase& each) {
    Net net(each, true);
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
  });
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
  for (const auto kind : test::kCausalKinds) {
    nn::Attention layer(root, nn::name(kind),
                        {.dim = 4, .heads = 2, .causal = true, .kind = kind, .window = test::kWindow});
    auto three = layer.make_state(3), state = layer.make_state(2);
    const Tensor x = Tensor::zeros({2, 4});
    CHECK_THROWS_WITH(layer.step(x, three), doctest::Contains(" wanted"));
    layer.step(x, state);
    const StateDict saved = state.state_dict();
    StateDict wide, more = saved;
    for (const auto& [name, value] : saved.tensors()) wide.set(name, value.to(Dtype::f64));
    for (const auto& [name, text] : saved.texts()) wide.set_text(name, text);
    more.set("q", x);
    CHECK_THROWS_WITH(state.load_state_dict(wide), doctest::Contains("is f64, this one is f32"));
    CHECK_THROWS_WITH(state.load_state_dict(more), doctest::Contains("unexpected: q"));
    CHECK_THROWS_WITH(state.select(Tensor::zeros({2, 2}, Dtype::i32)), doctest::Contains("are not i32 (n)"));
    state.load_state_dict(saved);
  }
}

TEST_CASE("attention: a ring that is not of this window is refused, by step and when loaded") {
  Net net(AttentionKind::local, true);
  const Tensor x = test::normal({1, 6, 12});
  auto state = net.attention.make_state(1);
  steps(net.attention, x, 0, 6, state);
  CHECK(state.local.oldest == 2);
  nn::Model root;
  nn::Attention wider(root, "wider",
                      {.dim = 12, .heads = 3, .causal = true, .kind = AttentionKind::local, .window = 9});
  CHECK(message_of([&] { wider.step(time_step(x, 0), state); }) ==
        "Attention wider: a state of 4 steps that begins at 2 given, which is not of window 9");
  StateDict saved = state.state_dict(), beyond;
  for (const auto& [name, value] : saved.tensors()) beyond.set(name, value);
  beyond.set_text("kind", "local");
  CHECK_THROWS_WITH(state.load_state_dict(beyond), doctest::Contains("oldest"));
  beyond.set_integer("oldest", 4);
  CHECK(message_of([&] { state.load_state_dict(beyond); }) == "attention state: oldest is 4, but there are 4 steps");
  CHECK(state.local.oldest == 2);
}

TEST_CASE("attention: what a kind cannot do is said when the layer is made") {
  nn::Model root;
  CHECK(message_of([&] { nn::Attention(root, "a", {.dim = 4, .heads = 2, .kind = AttentionKind::local}); }) ==
        "Attention a: local attention with window -1 given, 0 or more wanted; set .window");
  CHECK(message_of([&] {
          nn::Attention(root, "a", {.dim = 4, .heads = 2, .causal = true, .kind = AttentionKind::efficient});
        }) ==
        "Attention a: efficient attention cannot be causal, since its softmax over positions sees all keys at once; "
        "linear attention can");
  CHECK(message_of([&] { Net(AttentionKind::efficient, false).attention.make_state(2); }) ==
        "Attention attention: efficient attention has no recurrent form, since its softmax over positions sees all "
        "keys at once");
}

TEST_CASE("attention: a word names a kind, and a kind its word") {
  for (const auto kind :
       {AttentionKind::linear, AttentionKind::softmax, AttentionKind::local, AttentionKind::efficient})
    CHECK(nn::attention_kind(nn::name(kind)) == kind);
  CHECK(message_of([&] { nn::attention_kind("magic"); }) ==
        "attention kind magic: must be linear, softmax, local or efficient");
  CHECK(message_of([&] { nn::attention_kind("", "--attention"); }) ==
        "--attention : must be linear, softmax, local or efficient");
}
