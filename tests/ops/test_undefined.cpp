// Every op given an undefined input says which op and which input.
#include <doctest/doctest.h>

#include <functional>

#include "linnet/core/functors.h"
#include "linnet/linnet.h"

using namespace linnet;

namespace {

struct Case {
  const char* op;
  std::function<void(const Variable& nothing)> call;
};

}  // namespace

TEST_CASE("an op names itself where an input is undefined") {
  const Variable x = Tensor::zeros({2, 2});
  const Tensor mask = Tensor::zeros({2, 2}, Dtype::u8), index = Tensor::zeros({2}, Dtype::i32);
  const Variable heads = Tensor::zeros({1, 2, 1, 4}), one = Tensor::zeros({1, 1, 4});
  LinearState state;
  KeyValueCache cache;
  LocalCache local;
  Tensor out;
  const Case cases[] = {
#define LINNET_ROW(Functor, name, needs) {#name, [](const Variable& n) { name(n); }},
      LINNET_UNARY_OPS_WITHOUT_PARAMETERS(LINNET_ROW)
#undef LINNET_ROW
#define LINNET_ROW(Functor, name) \
  {#name, [&](const Variable& n) { name(x, n); }}, {#name, [&](const Variable& n) { name(n, x); }},
          LINNET_BINARY_OPS(LINNET_ROW) LINNET_COMPARE_OPS(LINNET_ROW)
#undef LINNET_ROW
#define LINNET_ROW(Functor, name) {#name, [](const Variable& n) { name(n, 1.0); }},
              LINNET_COMPARE_OPS(LINNET_ROW)
#undef LINNET_ROW
                  {"elu", [](const Variable& n) { elu(n); }},
      {"clamp", [](const Variable& n) { clamp(n, 0, 1); }},
      {"pow_scalar", [](const Variable& n) { pow(n, 2.0); }},
      {"affine", [](const Variable& n) { n + 1.0; }},
      {"affine", [](const Variable& n) { 2.0 * n; }},
      {"div", [](const Variable& n) { n / 2.0; }},
      {"div", [](const Variable& n) { 2.0 / n; }},
      {"logical_not", [](const Variable&) { logical_not({}); }},
      {"logical_and", [&](const Variable&) { logical_and(mask, {}); }},
      {"logical_or", [&](const Variable&) { logical_or({}, mask); }},
      {"where", [&](const Variable&) { where({}, x, x); }},
      {"where", [&](const Variable& n) { where(mask, n, x); }},
      {"where", [&](const Variable& n) { where(mask, n, 1.0); }},
      {"where", [&](const Variable& n) { where(mask, 1.0, n); }},
      {"argmax", [](const Variable& n) { argmax(n); }},
      {"sum", [](const Variable& n) { sum(n); }},
      {"mean", [](const Variable& n) { mean(n); }},
      {"max", [](const Variable& n) { max(n); }},
      {"min", [](const Variable& n) { min(n); }},
      {"var", [](const Variable& n) { var(n); }},
      {"logsumexp", [](const Variable& n) { logsumexp(n); }},
      {"cumsum", [](const Variable& n) { cumsum(n, 0); }},
      {"reshape",
       [](const Variable& n) {
         reshape(n, {1, -1});
       }},
      {"reshape", [](const Variable& n) { reshape(n, Shape{1}); }},
      {"transpose", [](const Variable& n) { transpose(n); }},
      {"permute", [](const Variable& n) { permute(n, {}); }},
      {"slice", [](const Variable& n) { slice(n, 0, 0); }},
      {"concat",
       [&](const Variable& n) {
         concat({x, n}, 0);
       }},
      {"stack",
       [&](const Variable& n) {
         stack({n, x}, 0);
       }},
      {"split", [](const Variable& n) { split(n, 1, 0); }},
      {"split", [](const Variable& n) { split(n, std::vector<int64_t>{1}, 0); }},
      {"gather_rows", [&](const Variable& n) { gather_rows(n, index); }},
      {"gather_rows", [&](const Variable&) { gather_rows(x, {}); }},
      {"broadcast_to", [](const Variable& n) { broadcast_to(n, {2}); }},
      {"matmul", [&](const Variable& n) { matmul(x, n); }},
      {"linear", [&](const Variable& n) { linear(n, x); }},
      {"linear", [&](const Variable& n) { linear(x, n); }},
      {"embedding", [&](const Variable& n) { embedding(n, index); }},
      {"embedding", [&](const Variable&) { embedding(x, {}); }},
      {"layer_norm", [](const Variable& n) { layer_norm(n); }},
      {"softmax", [](const Variable& n) { softmax(n); }},
      {"log_softmax", [](const Variable& n) { log_softmax(n); }},
      {"cross_entropy", [&](const Variable& n) { cross_entropy(n, index); }},
      {"cross_entropy", [&](const Variable&) { cross_entropy(x, {}); }},
      {"mse", [&](const Variable& n) { mse(x, n); }},
      {"dropout", [](const Variable& n) { dropout(n, 0.5); }},
      {"linear_attention", [&](const Variable& n) { linear_attention(heads, n, heads); }},
      {"linear_attention_qkv", [](const Variable& n) { linear_attention_qkv(n); }},
      {"linear_attention_with_state", [&](const Variable& n) { linear_attention_with_state(n, heads, heads, state); }},
      {"linear_attention_step", [&](const Variable& n) { linear_attention_step(one, one, n, state, out); }},
      {"linear_attention_step_qkv", [&](const Variable& n) { linear_attention_step_qkv(n, state, out); }},
      {"softmax_attention", [&](const Variable& n) { softmax_attention(heads, heads, n); }},
      {"softmax_attention_qkv", [](const Variable& n) { softmax_attention_qkv(n); }},
      {"softmax_attention_step", [&](const Variable& n) { softmax_attention_step(n, one, one, cache, out); }},
      {"softmax_attention_step_qkv", [&](const Variable& n) { softmax_attention_step_qkv(n, cache, out); }},
      {"local_attention", [&](const Variable& n) { local_attention(heads, n, heads, {.window = 1}); }},
      {"local_attention_qkv", [](const Variable& n) { local_attention_qkv(n, {.window = 1}); }},
      {"local_attention_step",
       [&](const Variable& n) { local_attention_step(one, one, n, local, out, {.window = 1}); }},
      {"local_attention_step_qkv", [&](const Variable& n) { local_attention_step_qkv(n, local, out, {.window = 1}); }},
      {"efficient_attention", [&](const Variable& n) { efficient_attention(heads, heads, n); }},
      {"efficient_attention_qkv", [](const Variable& n) { efficient_attention_qkv(n); }},
      {"lsh_hashes",
       [](const Variable&) {
         Generator generator;
         lsh_hashes({}, 2, 1, generator);
       }},
      {"lsh_attention", [&](const Variable& n) { lsh_attention(heads, n, heads, {.buckets = 2, .chunk = 1}); }},
      {"lsh_attention_qkv", [](const Variable& n) { lsh_attention_qkv(n, {.buckets = 2, .chunk = 1}); }},
      {"lsh_attention_shared", [&](const Variable& n) { lsh_attention_shared(n, heads, {.buckets = 2, .chunk = 1}); }},
      {"query_clusters",
       [](const Variable&) {
         Generator generator;
         query_clusters({}, {.clusters = 1}, generator);
       }},
      {"clustered_attention", [&](const Variable& n) { clustered_attention(heads, heads, n, {.clusters = 1}); }},
      {"clustered_attention_qkv", [](const Variable& n) { clustered_attention_qkv(n, {.clusters = 1}); }},
      {"squared_relu", [](const Variable& n) { squared_relu(n); }},
      {"polynomial_features", [](const Variable& n) { polynomial_features(n); }},
      {"fourier_features", [&](const Variable& n) { fourier_features(n, x.value()); }},
      {"favor_features",
       [](const Variable&) {
         favor_features(Tensor::zeros({2, 2}), {});
       }},
      {"backward", [](const Variable& n) { Tape().backward(n); }},
  };
  for (const auto& [op, call] : cases) {
    for (const Variable& nothing : {Variable(), Variable(Tensor())}) {
      INFO(op);
      std::string message;
      try {
        call(nothing);
      } catch (const Error& error) {
        message = error.what();
      }
      CHECK(message.rfind(std::string(op) + ": ", 0) == 0);
      CHECK(message.find(" is undefined; give it a tensor first") != std::string::npos);
    }
  }
}

TEST_CASE("an optional input that is undefined is none") {
  const Tensor x = Tensor::full({1, 2}, 1), weight = Tensor::full({3, 2}, 1);
  CHECK(linear(x, weight, Variable(Tensor())).value().to_vector<float>() == std::vector<float>(3, 2));
  CHECK(layer_norm(x, Variable(Tensor()), Tensor()).value().to_vector<float>() == std::vector<float>(2, 0));
}
