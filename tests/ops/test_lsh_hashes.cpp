// The hashes of LSH attention, its gradients and its errors.
#include "linnet/ops/lsh_attention.h"
#include "support/attention_run.h"
#include "support/gradients.h"
#include "support/lsh_attention.h"

using namespace linnet;
using test::random_hashes;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

}  // namespace

TEST_CASE("gradients of LSH attention") {
  if (default_device() == Device::cuda) return;  // long on the emulated one; test_lsh_attention_cuda.cpp compares
  const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {2, 7}));
  const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}, {2, 7}));
  test::for_each_lsh_form([&](LshAttentionOptions options) {
    for (const bool masked : {false, true}) {
      const Tensor hashes = random_hashes({2, 7, 1, 2}, 3);
      options.chunk = 2;
      options.rounds = 2;
      options.hashes = &hashes;
      options.keys = masked ? &keys : nullptr;
      options.queries = masked ? &queries : nullptr;
      check_gradients("lsh_attention", [&](const auto& x) { return lsh_attention(x[0], x[1], x[2], options); },
                      {draw({2, 7, 1, 2}, 1), draw({2, 7, 1, 2}, 2), draw({2, 7, 1, 3}, 3)});
      check_gradients("lsh_attention_qkv", [&](const auto& x) { return lsh_attention_qkv(x[0], options); },
                      {draw({2, 7, 3, 1, 2}, 1)});
      check_gradients("lsh_attention_shared", [&](const auto& x) { return lsh_attention_shared(x[0], x[1], options); },
                      {draw({2, 7, 1, 2}, 1), draw({2, 7, 1, 3}, 3)});
    }
  });
  for (const auto& [qk, v] : {std::pair<Shape, Shape>{{1, 0, 2, 3}, {1, 0, 2, 3}},
                              {{0, 3, 2, 3}, {0, 3, 2, 3}},
                              {{1, 3, 2, 0}, {1, 3, 2, 2}},
                              {{1, 3, 2, 2}, {1, 3, 2, 0}},
                              {{1, 150, 1, 3}, {1, 150, 1, 2}}}) {
    const Tensor hashes = random_hashes({qk[0], qk[1], qk[2], 2}, 4);
    check_gradients(
        "lsh_attention",
        [&](const auto& x) { return lsh_attention(x[0], x[1], x[2], {.chunk = 66, .rounds = 2, .hashes = &hashes}); },
        {draw(qk, 1), draw(qk, 2), draw(v, 3)});
  }
}

TEST_CASE("lsh_hashes: argmax of [xR; -xR], the same for any batch; opposite rows fall into opposite buckets") {
  const Tensor x = draw({2, 5, 3, 4}, 1, Dtype::f32);
  Generator generator{7, 0, 0}, same = generator, once = generator;
  const Tensor hashes = lsh_hashes(x, 6, 2, generator).to(Device::cpu);
  CHECK(hashes.shape() == Shape{2, 5, 3, 2});
  const Tensor rotations = same.normal({4, 6}, 0, 1).reshape({4, 6});
  CHECK(generator.offset == same.offset);
  const std::vector<float> projected = compute::matmul(x.reshape({30, 4}), rotations).to_vector<float>();
  for (size_t row = 0; row < 30; ++row)
    for (size_t r = 0; r < 2; ++r) {
      int32_t best = 0;
      const auto value = [&](int32_t c) {
        const float p = projected[row * 6 + r * 3 + static_cast<size_t>(c % 3)];
        return c < 3 ? p : -p;
      };
      for (int32_t c = 1; c < 6; ++c)
        if (value(c) > value(best)) best = c;
      CHECK(hashes.data<int32_t>()[row * 2 + r] == best);
    }
  const std::vector<int32_t> opposite = lsh_hashes(compute::scale(x, -2), 6, 2, once).to_vector<int32_t>();
  for (size_t i = 0; i < opposite.size(); ++i) CHECK(opposite[i] == (hashes.data<int32_t>()[i] + 3) % 6);
}

TEST_CASE("errors of LSH attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), one = Tensor::zeros({2, 1, 3});
  const LshAttentionOptions good{.buckets = 4, .chunk = 2};
  CHECK(message_of([&] { lsh_attention(q, k, k, good); }) ==
        "lsh_attention: needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] { lsh_attention(q, one, q, good); }) ==
        "lsh_attention: k (2, 1, 3) is not (batch, time, heads, dim)");
  CHECK(message_of([&] { lsh_attention_qkv(q, good); }) ==
        "lsh_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  CHECK(message_of([&] { lsh_attention_shared(q, k, good); }) ==
        "lsh_attention_shared: k (2, 3, 2, 4) and v (2, 5, 2, 4) differ in batch, time or heads");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4}); }) ==
        "lsh_attention: chunk 0 given, 1 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 3, .chunk = 2}); }) ==
        "lsh_attention: 3 buckets given, an even number of 2 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .rounds = 0}); }) ==
        "lsh_attention: 0 rounds given, 1 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .scale = std::nan("")}); }) ==
        "lsh_attention: scale nan given, a finite one wanted");
  const Tensor hashes = Tensor::zeros({2, 3, 2, 1}, Dtype::i32), floats = Tensor::zeros({2, 3, 2, 1});
  CHECK(message_of([&] { lsh_attention(q, q, q, {.chunk = 2, .rounds = 2, .hashes = &hashes}); }) ==
        "lsh_attention: hashes (2, 3, 2, 1) i32 are not i32 (batch, time, heads, rounds) = (2, 3, 2, 2)");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.chunk = 2, .hashes = &floats}); }) ==
        "lsh_attention: hashes (2, 3, 2, 1) f32 are not i32 (batch, time, heads, rounds) = (2, 3, 2, 1)");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .rotations = &one}); }) ==
        "lsh_attention: rotations (2, 1, 3) f32 are not f32 (dim, rounds, buckets / 2) = (4, 1, 2)");
  Generator generator;
  CHECK(message_of([&] { lsh_hashes(one, 4, 1, generator); }) ==
        "lsh_hashes: x (2, 1, 3) is not (batch, time, heads, dim)");
}
