#include "linnet/nn/linear.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support/arrays.h"

using namespace linnet;
using test::message_of;

TEST_CASE("Linear is x W^T + b") {
  nn::Model root;
  nn::Linear layer(root, "layer", {.in = 2, .out = 3});
  layer.weight.mutable_value().copy_from(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  layer.bias.mutable_value().copy_from(Tensor::from<float>({10, 20, 30}, {3}));
  const Variable y = layer(Tensor::from<float>({1, 1, 2, -1}, {2, 1, 2}));
  CHECK(y.shape() == Shape{2, 1, 3});
  CHECK(y.value().to_vector<float>() == std::vector<float>{13, 27, 41, 10, 22, 34});
}

TEST_CASE("Linear starts as U(-1/sqrt(in), 1/sqrt(in)), weight and bias") {
  nn::Model root;
  nn::Linear layer(root, "layer", {.in = 16, .out = 200});
  float most = 0, most_bias = 0;
  for (float x : layer.weight.value().to_vector<float>()) most = std::max(most, std::abs(x));
  for (float x : layer.bias.value().to_vector<float>()) most_bias = std::max(most_bias, std::abs(x));
  CHECK(most <= 0.25f);
  CHECK(most > 0.249f);
  CHECK(most_bias <= 0.25f);
  CHECK(most_bias > 0.23f);
  nn::Linear own(root, "own", {.in = 2, .out = 2, .bias = false, .weight_init = nn::init::constant(3)});
  CHECK(own.weight.value().to_vector<float>() == std::vector<float>(4, 3));
  CHECK_FALSE(own.bias.defined());
  CHECK(own.parameter_count() == 4);
}

TEST_CASE("Linear: errors name the layer or the op") {
  nn::Model root;
  nn::Linear layer(root, "layer", {.in = 8, .out = 16});
  CHECK(message_of([&] {
          layer(Tensor::zeros({64, 7}));
        }) == "Linear layer: linear: input (64, 7) ends in 7 but weight (16, 8) takes 8");
  CHECK(message_of([&] { nn::Linear(root, "bad", {.in = 0, .out = 3}); }) ==
        "Linear bad: in 0 and out 3, want at least 1");
  CHECK(message_of([&] { nn::Linear(root, "bad", {.in = 16, .out = 8, .tied = layer.weight}); }) ==
        "Linear bad: tied weight (16, 8) is not (out, in) = (8, 16)");
  CHECK(message_of([&] {
          nn::Linear(root, "bad", {.in = 8, .out = 16, .tied = Tensor::zeros({16, 8}, Dtype::i32)});
        }) == "Linear bad: tied weight is i32, f32 or f64 wanted");
  CHECK(root.children().size() == 1);  // what failed is not left behind
}
