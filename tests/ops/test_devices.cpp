// Every op with inputs on two devices: an Error that names the op and both, and nothing is moved or read. A bad index
// on a GPU: an Error that names the op, and what comes later works.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "linnet/linnet.h"
#include "support/arrays.h"
#include "support/devices.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Tensors = std::vector<Tensor>;

struct Case {
  std::string op;
  Tensors inputs;
  std::function<void(const Tensors&)> call;
};

std::vector<Case> elementary() {
  const Tensor a = grid({2, 4}, 0.013, Dtype::f32), row = grid({4}, 0.007, Dtype::f32);
  const Tensor index = Tensor::from<int32_t>({1, 0}, {2}), bytes = Tensor::full({2, 4}, 1, Dtype::u8);
  using In = const Tensors&;
  return {
      {"add", {a, a}, [](In x) { add(x[0], x[1]); }},
      {"sub", {a, row}, [](In x) { sub(x[0], x[1]); }},
      {"mul", {a, a}, [](In x) { mul(x[0], x[1]); }},
      {"div", {a, a}, [](In x) { div(x[0], x[1]); }},
      {"pow", {a, a}, [](In x) { pow(x[0], x[1]); }},
      {"maximum", {a, a}, [](In x) { maximum(x[0], x[1]); }},
      {"minimum", {a, a}, [](In x) { minimum(x[0], x[1]); }},
      {"equal", {a, a}, [](In x) { equal(x[0], x[1]); }},
      {"less", {a, a}, [](In x) { less(x[0], x[1]); }},
      {"logical_and", {bytes, bytes}, [](In x) { logical_and(x[0], x[1]); }},
      {"logical_or", {bytes, bytes}, [](In x) { logical_or(x[0], x[1]); }},
      {"where", {bytes, a, a}, [](In x) { where(x[0], x[1], x[2]); }},
      {"where", {bytes, a}, [](In x) { where(x[0], x[1], 1); }},
      {"where", {bytes, a}, [](In x) { where(x[0], 1, x[1]); }},
      {"concat",
       {a, a, a},
       [](In x) {
         concat({x[0], x[1], x[2]}, 0);
       }},
      {"concat",
       {a, a},
       [](In x) {
         stack({x[0], x[1]}, 1);
       }},
      {"gather_rows", {a, index}, [](In x) { gather_rows(x[0], x[1]); }},
      {"matmul", {a, a}, [](In x) { matmul(x[0], x[1], false, true); }},
      {"linear", {a, a, row.slice(0, 2)}, [](In x) { linear(x[0], x[1], x[2]); }},
      {"mse", {a, a}, [](In x) { mse(x[0], x[1]); }},
      {"embedding", {a, index}, [](In x) { embedding(x[0], x[1]); }},
      {"cross_entropy", {a, index}, [](In x) { cross_entropy(x[0], x[1]); }},
      {"layer_norm", {a, row, row}, [](In x) { layer_norm(x[0], x[1], x[2]); }},
      {"fourier_features", {a, grid({4, 4}, 0, Dtype::f32)}, [](In x) { fourier_features(x[0], x[1]); }},
      {"favor_features", {a, grid({4, 4}, 0, Dtype::f32)}, [](In x) { favor_features(x[0], x[1]); }},
      {"batch_norm",
       {a, row, row, row, row},
       [](In x) {
         Tensor mean = x[3], variance = x[4];
         batch_norm(x[0], x[1], x[2], {mean, variance});
       }},
  };
}

std::vector<Case> attentions() {
  const Tensor q = grid({2, 4, 2, 8}, 0.013, Dtype::f32), v = grid({2, 4, 2, 3}, 0.007, Dtype::f32);
  using In = const Tensors&;
  const Tensor s = Tensor::zeros({2, 2, 8, 3}), z = Tensor::zeros({2, 2, 8}), out = Tensor::zeros({2, 2, 3});
  const auto step = [](const Tensor& x) { return Tensor::zeros({2, 2, x.size(3)}); };
  return {
      {"linear_attention", {q, q, v}, [](In x) { linear_attention(x[0], x[1], x[2], {.causal = true}); }},
      {"softmax_attention", {q, q, v}, [](In x) { softmax_attention(x[0], x[1], x[2]); }},
      {"local_attention", {q, q, v}, [](In x) { local_attention(x[0], x[1], x[2], {.window = 2}); }},
      {"efficient_attention", {q, q, v}, [](In x) { efficient_attention(x[0], x[1], x[2]); }},
      {"lsh_attention", {q, q, v}, [](In x) { lsh_attention(x[0], x[1], x[2], {.buckets = 2, .chunk = 2}); }},
      {"lsh_attention",
       {q, q, v, grid({8, 1, 1}, 0, Dtype::f32)},
       [](In x) { lsh_attention(x[0], x[1], x[2], {.buckets = 2, .chunk = 2, .rotations = &x[3]}); }},
      {"lsh_attention",
       {q, q, v, Tensor::zeros({2, 4, 2, 1}, Dtype::i32)},
       [](In x) { lsh_attention(x[0], x[1], x[2], {.buckets = 2, .chunk = 2, .hashes = &x[3]}); }},
      {"clustered_attention",
       {q, q, v},
       [](In x) { clustered_attention(x[0], x[1], x[2], {.clusters = 2, .bits = 4}); }},
      {"clustered_attention",
       {q, q, v, grid({9, 4}, 0, Dtype::f32)},
       [](In x) { clustered_attention(x[0], x[1], x[2], {.clusters = 2, .bits = 4, .planes = &x[3]}); }},
      {"clustered_attention",
       {q, q, v, Tensor::zeros({2, 4, 2}, Dtype::i32)},
       [](In x) { clustered_attention(x[0], x[1], x[2], {.clusters = 2, .groups = &x[3]}); }},
      {"linear_attention_with_state",
       {q, q, v, s, z},
       [](In x) {
         linear_attention_with_state(x[0], x[1], x[2], {x[3], x[4]});
       }},
      {"linear_attention_step",
       {step(q), step(q), step(v), s, z, out},
       [](In x) {
         LinearState state(x[3], x[4]);
         Tensor o = x[5];
         linear_attention_step(x[0], x[1], x[2], state, o);
       }},
  };
}

std::string mixed_message(const std::string& op, const std::string& one, const std::string& other) {
  return op + ": one input is on " + one + " and another on " + other + "; move one with .to(device)";
}

void check_refusals(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    each.call(each.inputs);  // right as it stands
    for (size_t i = 0; i < each.inputs.size(); ++i) {
      Tensors mixed = each.inputs;
      mixed[i] = mixed[i].to(other_than(mixed[i].device()));
      const std::string message = message_of([&] { each.call(mixed); });
      INFO(each.op, ", input ", i, ": ", message);
      CHECK((message == mixed_message(each.op, "cpu", "cuda") || message == mixed_message(each.op, "cuda", "cpu")));
    }
  }
}

}  // namespace

TEST_CASE("an op with inputs on two devices is an Error that names it and both") {
  if (!cuda_available()) return;
  check_refusals(elementary());
}

TEST_CASE("so is an attention") {
  if (!cuda_available()) return;
  check_refusals(attentions());
}

TEST_CASE("so is a seed of the way back") {
  if (!cuda_available()) return;
  const Variable leaf = Variable::leaf(Tensor::zeros({2}));
  Tape tape;
  const Variable y = square(leaf);
  const Device here = y.device(), other = other_than(here);
  CHECK(message_of([&] { tape.backward(y, Tensor::zeros({2}, Dtype::f32, other)); }) ==
        mixed_message("backward", name(here), name(other)));
}

TEST_CASE("an index out of range is an Error on a GPU, too, and what comes later works") {
  if (!cuda_available()) return;
  const OnDevice there(Device::cuda);
  const Tensor table = Tensor::arange(8, Dtype::f32).reshape({4, 2});
  for (const int32_t bad : {4, -1, 2147483647}) {
    const Tensor index = Tensor::from<int32_t>({0, 3, bad}, {3});
    const std::string given = std::to_string(bad);
    CHECK(message_of([&] { embedding(table, index); }) ==
          "embedding: index " + given + " at position 2, but there are 4 rows");
    CHECK(message_of([&] { gather_rows(table, index); }) ==
          "gather_rows: index " + given + " at position 2, but there are 4 rows");
    CHECK(message_of([&] { cross_entropy(Tensor::zeros({3, 4}), index); }).starts_with("cross_entropy: "));
    CHECK(embedding(table, index.slice(0, 2)).value().to_vector<float>() == std::vector<float>{0, 1, 6, 7});
    CHECK(cross_entropy(Tensor::zeros({3, 4}), Tensor::from<int32_t>({0, 3, 1}, {3})).item() ==
          doctest::Approx(std::log(4.0)));
  }
}
