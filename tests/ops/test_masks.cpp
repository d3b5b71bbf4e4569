#include "linnet/ops/masks.h"

#include "support/attention.h"

using namespace linnet;

TEST_CASE("masks from lengths and from arrays say the same") {
  const Tensor wanted = Tensor::from<uint8_t>({1, 1, 0, 0, 0, 0, 1, 1, 1}, {3, 3});
  CHECK(bit_equal(KeyMask::lengths({2, 0, 3}).steps("op", "key", 3, 3, default_device()), wanted));
  CHECK(bit_equal(KeyMask::lengths(Tensor::from<int32_t>({2, 0, 3}, {3})).steps("op", "key", 3, 3, default_device()),
                  wanted));
  CHECK(bit_equal(KeyMask::array(wanted).steps("op", "key", 3, 3, default_device()), wanted));
  CHECK(bit_equal(QueryMask::lengths({2, 0, 3}).steps("op", "query", 3, 3, default_device()), wanted));
  CHECK(bit_equal(QueryMask::array(wanted).steps("op", "query", 3, 3, default_device()), wanted));
  CHECK(bit_equal(PairMask(wanted).pairs("op", 3, 3, default_device()), wanted));
}

TEST_CASE("masks say what they cannot be made of") {
  CHECK(message_of([] { KeyMask::lengths({3, -1}); }) == "KeyMask: length -1 of sample 1 is negative");
  CHECK(message_of([] {
          KeyMask::lengths(Tensor::zeros({2, 3}, Dtype::i32));
        }) == "KeyMask: lengths (2, 3) i32 are not one i32 a sample, (batch)");
  CHECK(message_of([] { QueryMask::lengths(Tensor::zeros({2}, Dtype::f32)); }) ==
        "QueryMask: lengths (2) f32 are not one i32 a sample, (batch)");
  CHECK(message_of([] {
          QueryMask::array(Tensor::zeros({2, 3}));
        }) == "QueryMask: array (2, 3) f32 is not u8 (batch, time)");
  CHECK(message_of([] { PairMask(Tensor::zeros({3}, Dtype::u8)); }) ==
        "PairMask: array (3) u8 is not u8 (queries, keys)");
}

TEST_CASE("masks say what they do not fit") {
  CHECK(message_of([] {
          KeyMask::lengths({2, 4}).steps("linear_attention", "key", 2, 3, default_device());
        }) == "linear_attention: key length 4 of sample 1 is above the time 3");
  CHECK(message_of([] { KeyMask::lengths({2}).steps("linear_attention", "key", 2, 3, default_device()); }) ==
        "linear_attention: key mask has 1 lengths for a batch of 2");
  CHECK(message_of([] {
          QueryMask::array(Tensor::zeros({2, 4}, Dtype::u8)).steps("linear_attention", "query", 2, 3, default_device());
        }) == "linear_attention: query mask (2, 4) is not (batch, time) = (2, 3)");
  CHECK(message_of([] {
          PairMask(Tensor::zeros({2, 4}, Dtype::u8)).pairs("softmax_attention", 2, 3, default_device());
        }) == "softmax_attention: pair mask (2, 4) is not (queries, keys) = (2, 3)");
}
