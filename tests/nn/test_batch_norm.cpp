#include "linnet/nn/batch_norm.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using test::message_of;

TEST_CASE("BatchNorm: statistics of the batch while a tape trains, the running ones elsewhere, which a file holds") {
  test::TemporaryFile file("batch_norm.safetensors");
  nn::Model root, other;
  nn::BatchNorm norm(root, "norm", {.dim = 3, .momentum = 0.5, .eps = 0}), loaded(other, "norm", {.dim = 3, .eps = 0});
  const Tensor x = test::grid({8, 3}, 0.013, Dtype::f32);
  CHECK(test::same_bits(norm(x).value(), x));  // mean 0, variance 1
  for (int i = 0; i < 30; ++i) {
    Tape tape;
    const Variable y = norm(x);
    double sum = 0;
    for (float value : y.value().to_vector<float>()) sum += value * value;
    CHECK(sum == doctest::Approx(24).epsilon(1e-5));
  }
  const Tensor trained = norm(x).value();
  {
    Tape tape;
    CHECK(test::deviation(trained, norm(x).value()) < 1e-5);  // 30 halvings: the running ones are the batch's
  }
  REQUIRE(root.named_buffers().size() == 2);
  CHECK(root.parameter_count() == 6);
  save_safetensors(file.path(), root.state_dict());
  CHECK(load_safetensors(file.path()).has("norm.mean"));
  other.load_state_dict(load_safetensors(file.path()));
  CHECK(test::same_bits(loaded(x).value(), norm(x).value()));
  root.to(Dtype::f64);
  CHECK(test::deviation(norm(x.to(Dtype::f64)).value(), trained) < 1e-5);
}

TEST_CASE("BatchNorm: padding is left out") {
  nn::Model root;
  nn::BatchNorm norm(root, "norm", {.dim = 1});
  const KeyMask keys = KeyMask::lengths({2, 1});
  Tape tape;
  norm(Tensor::from<float>({1, 2, 3, 1000}, {2, 2, 1}), &keys);
  CHECK(root.named_buffers()[0].second.item() == doctest::Approx(0.2));  // 0.1 of (1 + 2 + 3) / 3
  CHECK(root.named_buffers()[1].second.item() == doctest::Approx(0.9 + 0.1 * 2 / 3));
}

TEST_CASE("BatchNorm: errors") {
  nn::Model root;
  nn::BatchNorm norm(root, "norm", {.dim = 4});
  CHECK(message_of([&] {
          norm(Tensor::zeros({2, 3}));
        }) == "BatchNorm norm: batch_norm: input (2, 3) wants a weight of (3), but it is (4)");
  CHECK(message_of([&] { nn::BatchNorm(root, "bad", {.dim = 0}); }) == "BatchNorm bad: dim 0, want at least 1");
  CHECK(message_of([&] { nn::BatchNorm(root, "bad", {.dim = 4, .eps = -1}); }) ==
        "BatchNorm bad: eps -1 given, want finite and not negative");
  CHECK(message_of([&] { nn::BatchNorm(root, "bad", {.dim = 4, .momentum = 2}); }) ==
        "BatchNorm bad: momentum 2 given, want 0 .. 1");
}
