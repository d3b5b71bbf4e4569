#include "linnet/nn/layer_norm.h"

#include <doctest/doctest.h>

#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;
using test::message_of;

TEST_CASE("LayerNorm normalises the last axis, then scales and shifts") {
  nn::Model root;
  nn::LayerNorm norm(root, "norm", {.dim = 4, .eps = 0});
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 4});
  // (x - 2.5) / sqrt(1.25)
  const Tensor plain = Tensor::from<float>({-1.34164079f, -0.4472136f, 0.4472136f, 1.34164079f}, {1, 4});
  CHECK(test::deviation(norm(x).value(), plain) < 1e-6);
  norm.weight.mutable_value().fill(2);
  norm.bias.mutable_value().fill(1);
  const Tensor moved = Tensor::from<float>({-1.68328157f, 0.1055728f, 1.8944272f, 3.68328157f}, {1, 4});
  CHECK(test::deviation(norm(x).value(), moved) < 1e-6);
}

TEST_CASE("LayerNorm: errors") {
  nn::Model root;
  nn::LayerNorm norm(root, "norm", {.dim = 4});
  CHECK_THROWS_WITH(norm(Tensor::zeros({2, 3})), doctest::Contains("LayerNorm norm: layer_norm: "));
  CHECK(message_of([&] { nn::LayerNorm(root, "bad", {.dim = 0}); }) == "LayerNorm bad: dim 0, want at least 1");
  CHECK(message_of([&] { nn::LayerNorm(root, "bad", {.dim = 4, .eps = -1}); }) ==
        "LayerNorm bad: eps -1 given, want finite and not negative");
}
