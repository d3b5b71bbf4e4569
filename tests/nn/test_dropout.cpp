#include "linnet/nn/dropout.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;
using test::message_of;

TEST_CASE("Dropout acts only where a tape trains") {
  nn::Model root;
  nn::Dropout dropout(root, "dropout", {.p = 0.5});
  const Tensor x = Tensor::full({1000}, 1);
  CHECK(test::same_bits(dropout(x).value(), x));
  {
    Tape tape({.training = false});
    CHECK(test::same_bits(dropout(x).value(), x));
  }
  Tape tape;
  int zeros = 0, twos = 0;
  for (float y : dropout(x).value().to_vector<float>()) (y == 0 ? zeros : twos) += (y == 0 || y == 2);
  CHECK(zeros + twos == 1000);
  CHECK(zeros > 400);
  CHECK(zeros < 600);
}

TEST_CASE("Dropout: p is a probability") {
  nn::Model root;
  CHECK(message_of([&] { nn::Dropout(root, "bad", {.p = 1.5}); }) ==
        "Dropout bad: p 1.5 is not a probability, 0 .. 1 wanted");
  CHECK(message_of([&] { nn::Dropout(root, "bad", {.p = std::nan("")}); }) ==
        "Dropout bad: p nan is not a probability, 0 .. 1 wanted");
}
