#include "linnet/models/block.h"

#include <doctest/doctest.h>

#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using test::deviation;

namespace {

struct Net : nn::Model {
  models::Block block;
  explicit Net(const models::BlockOptions& options) : block(*this, "block", options) { test::randomise(*this, 0.5); }
};

/// Calls f(options) for each kind that can be causal, pre- and post-norm.
template <class F>
void for_each_block(const F& f) {
  for (const AttentionKind kind : test::kCausalKinds) {
    for (const bool pre_norm : {true, false}) {
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      f(models::BlockOptions{.dim = 8,
                             .heads = 2,
                             .hidden = 12,
                             .causal = true,
                             .kind = kind,
                             .window = test::kWindow,
                             .pre_norm = pre_norm});
    }
  }
}

}  // namespace

TEST_CASE("block: the recurrent form equals the parallel one") {
  for_each_block([](const models::BlockOptions& options) {
    Net net(options);
    const Tensor x = test::normal({3, 21, 8});
    const Tensor y = net.block(x).value();
    auto state = net.block.make_state(3);
    for (int64_t t = 0; t < 21; ++t) {
      CHECK(deviation(net.block.step(test::time_step(x, t), state).value(), test::time_step(y, t)) < 1e-5);
    }
  });
}

TEST_CASE("block: pre-norm and post-norm are what they say") {
  for_each_block([](const models::BlockOptions& options) {
    Net net(options);
    const auto& [norm1, attention, norm2, feed_forward] =
        std::tie(net.block.norm1, net.block.attention, net.block.norm2, net.block.feed_forward);
    const Variable x = test::normal({2, 5, 8});
    Variable y;
    if (options.pre_norm) {
      const Variable h = x + attention(norm1(x));
      y = h + feed_forward(norm2(h));
    } else {
      const Variable h = norm1(x + attention(x));
      y = norm2(h + feed_forward(h));
    }
    CHECK(test::same_bits(net.block(x).value(), y.value()));
  });
}

TEST_CASE("block: gradients of the input and of every parameter, in f64") {
  for_each_block([](const models::BlockOptions& wanted) {
    for (const bool causal : {true, false}) {
      models::BlockOptions options = wanted;
      options.dim = 4;
      options.hidden = 3;
      options.causal = causal;
      Net net(options);
      net.to(Dtype::f64);
      auto& b = net.block;
      const std::vector<Variable*> used{&b.norm1.weight,
                                        &b.norm1.bias,
                                        &b.attention.qkv.weight,
                                        &b.attention.qkv.bias,
                                        &b.attention.out.weight,
                                        &b.attention.out.bias,
                                        &b.norm2.weight,
                                        &b.norm2.bias,
                                        &b.feed_forward.up.weight,
                                        &b.feed_forward.up.bias,
                                        &b.feed_forward.down.weight,
                                        &b.feed_forward.down.bias};
      REQUIRE(used.size() == net.parameters().size());
      std::vector<Tensor> inputs{test::normal({2, 3, 4}, 3, Dtype::f64)};
      for (const Variable* p : used) inputs.push_back(p->value());
      const KeyMask keys = KeyMask::lengths({3, 2});
      CHECK_NOTHROW(gradcheck(
          [&](const std::vector<Variable>& leaves) {
            for (size_t i = 0; i < used.size(); ++i) *used[i] = leaves[i + 1];
            return net.block(leaves[0], &keys);
          },
          inputs));
    }
  });
}

TEST_CASE("block: dropout acts in training alone, on both branches") {
  models::BlockOptions options{.dim = 8, .heads = 2, .causal = true, .dropout = 0.5};
  Net net(options);
  CHECK(net.block.feed_forward.up.weight.shape() == Shape{32, 8});  // hidden is 4 dim where not given
  const Tensor x = test::normal({2, 5, 8});
  const Tensor y = net.block(x).value();
  CHECK(test::same_bits(net.block(x).value(), y));
  {
    Tape tape({.training = false});
    CHECK(test::same_bits(net.block(x).value(), y));
  }
  Tape tape;
  CHECK_FALSE(test::same_bits(net.block(x).value(), net.block(x).value()));
  options.dropout = 1;  // all of both branches
  CHECK(test::same_bits(Net(options).block(x).value(), x));
}

TEST_CASE("block: errors say where in the model they arose") {
  nn::Model root;
  CHECK(test::message_of([&] { models::Block(root, "layer", {.dim = 10, .heads = 4}); }) ==
        "Attention layer.attention: dim 10 cannot be divided among 4 heads");
  CHECK(test::message_of([&] { models::Block(root, "layer", {.dim = 8, .heads = 4, .kind = AttentionKind::local}); }) ==
        "Attention layer.attention: local attention with window -1 given, 0 or more wanted; set .window");
  CHECK(test::message_of([&] { models::Block(root, "layer", {.dim = 8, .heads = 4, .dropout = 2}); }) ==
        "Dropout layer.feed_forward.dropout: p 2 is not a probability, 0 .. 1 wanted");
}
