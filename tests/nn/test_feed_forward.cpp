#include "linnet/nn/feed_forward.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;

TEST_CASE("FeedForward is down(activation(up(x))) for every activation") {
  nn::Model root;
  const Tensor x = test::normal({2, 3, 4});
  const auto check = [&](nn::Activation activation, const auto& f) {
    nn::FeedForward net(root, "net", {.dim = 4, .hidden = 5, .activation = activation});
    test::randomise(net, 1);
    const Variable y = net(x);
    CHECK(y.shape() == Shape{2, 3, 4});
    CHECK(test::same_bits(y.value(), net.down(f(net.up(x))).value()));
  };
  check(nn::Activation::gelu, [](const Variable& h) { return gelu(h); });
  check(nn::Activation::gelu_tanh, [](const Variable& h) { return gelu_tanh(h); });
  check(nn::Activation::relu, [](const Variable& h) { return relu(h); });
  check(nn::Activation::elu, [](const Variable& h) { return elu(h); });
  check(nn::Activation::tanh, [](const Variable& h) { return tanh(h); });
}

TEST_CASE("FeedForward drops hidden units only in training") {
  nn::Model root;
  nn::FeedForward net(root, "net", {.dim = 4, .hidden = 64, .dropout = 0.5});
  const Tensor x = test::normal({2, 4});
  const Tensor y = net(x).value();
  CHECK(test::same_bits(net(x).value(), y));
  Tape tape;
  CHECK_FALSE(test::same_bits(net(x).value(), y));
}
