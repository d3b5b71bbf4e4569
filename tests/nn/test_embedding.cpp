#include "linnet/nn/embedding.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/ops/reduce.h"
#include "support/arrays.h"

using namespace linnet;
using test::message_of;

TEST_CASE("Embedding looks rows up, whatever the shape of the index") {
  nn::Model root;
  nn::Embedding embed(root, "embed", {.rows = 3, .dim = 2});
  embed.weight.mutable_value().copy_from(Tensor::from<float>({0, 1, 10, 11, 20, 21}, {3, 2}));
  const Variable y = embed(Tensor::from<int32_t>({2, 0, 2, 1}, {2, 2}));
  CHECK(y.shape() == Shape{2, 2, 2});
  CHECK(y.value().to_vector<float>() == std::vector<float>{20, 21, 0, 1, 20, 21, 10, 11});
}

TEST_CASE("Embedding: the padding row is zeros and stays so") {
  nn::Model root;
  nn::Embedding embed(root, "embed", {.rows = 3, .dim = 2, .padding_row = 1});
  Tape tape;
  const Variable y = embed(Tensor::from<int32_t>({1, 1, 2}, {3}));
  tape.backward(sum(y));
  CHECK(y.value().slice(0, 1).to_vector<float>() == std::vector<float>{0, 0});
  CHECK(embed.weight.grad().to_vector<float>() == std::vector<float>{0, 0, 0, 0, 1, 1});
}

TEST_CASE("Embedding: errors") {
  nn::Model root;
  nn::Embedding embed(root, "embed", {.rows = 5, .dim = 2});
  CHECK_THROWS_WITH(embed(Tensor::from<int32_t>({0, 5}, {2})), doctest::Contains("embedding: "));
  CHECK_THROWS_WITH(embed(Tensor::from<int32_t>({-1}, {1})), doctest::Contains("embedding: "));
  CHECK_THROWS_WITH(embed(Tensor::zeros({2})), doctest::Contains("Embedding embed: embedding: "));
  CHECK(message_of([&] { nn::Embedding(root, "bad", {.rows = 5, .dim = 0}); }) ==
        "Embedding bad: rows 5 and dim 0, want at least 1");
  CHECK(message_of([&] { nn::Embedding(root, "bad", {.rows = 5, .dim = 1, .padding_row = 5}); }) ==
        "Embedding bad: padding row 5 is not one of 5 rows");
}
