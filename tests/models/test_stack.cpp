#include "linnet/models/stack.h"

#include <doctest/doctest.h>

#include "linnet/core/safetensors.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::AttentionCase;
using test::deviation;

namespace {

struct Net : nn::Model {
  models::Stack stack;
  Net(const AttentionCase& each, bool pre_norm, bool causal = true)
      : stack(*this, "stack",
              {.layers = 3,
               .block = {.dim = 8,
                         .heads = 2,
                         .hidden = 12,
                         .causal = causal,
                         .kind = each.kind,
                         .window = test::kWindow,
                         .pre_norm = pre_norm,
                         .eps = each.eps,
                         .feature_map = each.features}}) {
    test::randomise(*this, each.weights);
  }
  Net(AttentionKind kind, bool pre_norm) : Net(AttentionCase{nn::name(kind), kind}, pre_norm) {}
};

template <class F>
void for_each_stack(const F& f) {
  for (const bool pre_norm : {true, false}) {
    CAPTURE(pre_norm);
    test::for_each_causal([&](const AttentionCase& each) { f(each, pre_norm); });
  }
}

}  // namespace

TEST_CASE("stack: the recurrent form equals the parallel one; a state can be copied, saved and chosen from") {
  test::TemporaryFile file("stack_state.safetensors");
  for_each_stack([&](const AttentionCase& each, bool pre_norm) {
    Net net(each, pre_norm);
    const Tensor x = test::normal({2, 18, 8}), other = test::normal({2, 18, 8}, 9);
    const Tensor y = net.stack(x).value();
    auto state = net.stack.make_state(2);
    const auto step = [&](const Tensor& input, int64_t t, models::StackState& s) {
      return net.stack.step(test::time_step(input, t), s).value();
    };
    for (int64_t t = 0; t < 9; ++t) CHECK(deviation(step(x, t, state), test::time_step(y, t)) < 1e-5);
    models::StackState copy = state, loaded = net.stack.make_state(2);
    save_safetensors(file.path(), state.state_dict());
    loaded.load_state_dict(load_safetensors(file.path()));
    models::StackState second = state.select(Tensor::from<int32_t>({1}, {1}));
    for (int64_t t = 9; t < 18; ++t) {
      step(other, t, copy);
      const Tensor now = step(x, t, state);
      CHECK(deviation(now, test::time_step(y, t)) < 1e-5);
      CHECK(test::same_bits(step(x, t, loaded), now));
      CHECK(deviation(net.stack.step(test::time_step(x, t).slice(1, 2), second).value(), now.slice(1, 2)) < 1e-5);
    }
  });
}

TEST_CASE("stack: a last norm where pre-norm, none where post-norm") {
  Net pre(AttentionKind::linear, true), post(AttentionKind::linear, false);
  CHECK(pre.stack.norm.has_value());
  CHECK_FALSE(post.stack.norm.has_value());
  CHECK(pre.parameter_count() == post.parameter_count() + 16);
  CHECK(pre.state_dict().has("stack.norm.weight"));
  CHECK(pre.state_dict().has("stack.blocks.2.attention.qkv.weight"));
}

TEST_CASE("stack: a padded sample gives what it gives alone") {
  const KeyMask keys = KeyMask::lengths({7, 3});
  for_each_stack([&](const AttentionCase& each, bool pre_norm) {
    for (const bool causal : {true, false}) {
      Net net(each, pre_norm, causal);
      const Tensor x = test::normal({2, 7, 8});
      const Tensor y = net.stack(x, &keys).value();
      CHECK(deviation(test::sample(y, 1, 3), net.stack(test::sample(x, 1, 3)).value()) < 1e-5);
      CHECK(deviation(test::sample(y, 0, 7), net.stack(test::sample(x, 0, 7)).value()) < 1e-5);
    }
  });
}

TEST_CASE("stack: a state of another depth is an error, before anything changes") {
  Net net(AttentionKind::linear, true);
  models::StackState state = net.stack.make_state(2);
  const Tensor before = state.layers[0].linear.s.value().clone();
  state.layers.pop_back();
  CHECK(test::message_of([&] {
          net.stack.step(Tensor::full({2, 8}, 1), state);
        }) == "Stack stack: a state of 2 layers given, there are 3");
  CHECK(test::same_bits(state.layers[0].linear.s.value(), before));
}

TEST_CASE("stack: a step whose state does not fit advances no layer") {
  for (const AttentionKind kind : test::kCausalKinds) {
    Net net(kind, true);
    auto state = net.stack.make_state(1);
    state.layers[1] = net.stack.make_state(2).layers[1];
    const Tensor x = test::normal({1, 8});
    CHECK_THROWS_WITH(net.stack.step(x, state), doctest::Contains("Attention stack.blocks.1.attention: state "));
    if (kind == AttentionKind::linear) {
      for (float z : state.layers[0].linear.z.value().to_vector<float>()) CHECK(z == 0);
    } else {
      CHECK(state.layers[0].cache().length == 0);
    }
  }
}
