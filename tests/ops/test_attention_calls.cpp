// Every attention with keys that are padding: rows without keys, lengths that differ, one call after another.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "linnet/ops/clustered_attention.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/local_attention.h"
#include "linnet/ops/lsh_attention.h"
#include "support/attention_run.h"
#include "support/lsh_attention.h"

using namespace linnet;
using test::AttentionRun;

namespace {

using Lengths = std::vector<int32_t>;

struct Attention {
  std::string name;
  bool causal;
  std::function<Variable(const Variable&, const Variable&, const Variable&, const KeyMask*, const QueryMask*)> attend;

  /// Keys beyond the lengths are left out.
  AttentionRun operator()(const Tensor& q, const Tensor& k, const Tensor& v, const Lengths& lengths) const {
    const KeyMask keys = KeyMask::lengths(lengths);
    // Clusters are made of the queries, so that padding among these would change them.
    const QueryMask queries = QueryMask::lengths(lengths);
    return test::run_attention(
        q, k, v, [&](const auto& a, const auto& b, const auto& c) { return attend(a, b, c, &keys, &queries); });
  }
};

std::vector<Attention> attentions() {
  std::vector<Attention> all;
  for (const bool causal : {false, true}) {
    const auto add = [&](const char* name, auto attend) {
      all.push_back({std::string(name) + (causal ? ", causal" : ""), causal, attend});
    };
    add("softmax", [causal](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask*) {
      return softmax_attention(q, k, v, {.causal = causal, .keys = keys});
    });
    add("linear", [causal](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask*) {
      return linear_attention(q, k, v, {.causal = causal, .keys = keys});
    });
    add("local", [causal](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask*) {
      return local_attention(q, k, v, {.window = 3, .causal = causal, .keys = keys});
    });
    add("LSH", [causal](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask*) {
      Generator generator{6, 0, 0};
      return lsh_attention(q, k, v,
                           {.buckets = 4,
                            .chunk = 8,
                            .rounds = 2,
                            .causal = causal,
                            .self = true,
                            .keys = keys,
                            .generator = &generator});
    });
    add("improved clustered", [causal](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask* queries) {
      Generator generator{6, 0, 0};
      return clustered_attention(
          q, k, v,
          {.clusters = 3, .topk = 4, .causal = causal, .keys = keys, .queries = queries, .generator = &generator});
    });
  }
  all.push_back({"clustered", false, [](auto& q, auto& k, auto& v, const KeyMask* keys, const QueryMask* queries) {
                   Generator generator{6, 0, 0};
                   return clustered_attention(
                       q, k, v, {.clusters = 3, .keys = keys, .queries = queries, .generator = &generator});
                 }});
  return all;
}

template <class F>
void for_each_attention(const F& f) {
  for (const Attention& each : attentions()) {
    CAPTURE(each.name);
    // Clustered attention has no kernel on a GPU yet.
    if (default_device() == Device::cuda && std::string(each.name).find("clustered") != std::string::npos) continue;
    f(each);
  }
}

struct Inputs {
  Tensor q, k, v;
  explicit Inputs(int64_t batch, int64_t time, uint64_t seed = 1)
      : q(test::normal({batch, time, 2, 4}, seed)),
        k(test::normal(q.shape(), seed + 1)),
        v(test::normal(q.shape(), seed + 2)) {}
};

void check_same(const AttentionRun& a, const AttentionRun& b) {
  CHECK(bit_equal(a.out, b.out));
  CHECK(bit_equal(a.dq, b.dq));
  CHECK(bit_equal(a.dk, b.dk));
  CHECK(bit_equal(a.dv, b.dv));
}

}  // namespace

TEST_CASE("SA1: every attention gives 0, and gradients of 0, to a sample whose keys are all masked") {
  const Inputs x(2, 12);
  const KeyMask keys = KeyMask::lengths({12, 0});
  for_each_attention([&](const Attention& attention) {
    const AttentionRun r = test::run_attention(x.q, x.k, x.v, [&](const auto& a, const auto& b, const auto& c) {
      return attention.attend(a, b, c, &keys, nullptr);
    });
    test::check_nothing_after({r.out, r.dq, r.dk, r.dv}, 1, 0);
    CHECK(compute::all_finite(r.out));
    CHECK(!test::all_zero(r.out));
  });
}

TEST_CASE("SA3: a key mask leaves out keys for every query") {
  const Tensor zero = Tensor::zeros({1, 4, 1, 2}), v = Tensor::from<float>({1, 3, 70, 90}, {1, 4, 1, 1});
  const KeyMask keys = KeyMask::lengths({2});
  for_each_attention([&](const Attention& attention) {
    const auto y = attention.attend(zero, zero, v, &keys, nullptr).value().to_vector<float>();
    for (size_t t = 0; t < 4; ++t) CHECK(y[t] == doctest::Approx(attention.causal && t == 0 ? 1 : 2).epsilon(1e-6));
  });
}

TEST_CASE("SA5: a sample padded behind its length gives what it gives alone, and NaN in the padding stays there") {
  Inputs x(2, 10);
  for (Tensor* padded : {&x.k, &x.v}) padded->reshape({20, 8}).slice(14, 20).fill(NAN);
  for_each_attention([&](const Attention& attention) {
    const AttentionRun r = attention(x.q, x.k, x.v, {10, 4});
    for (const Tensor& each : {r.out, r.dq, r.dk, r.dv}) CHECK(compute::all_finite(each));
    test::check_nothing_after({r.dk, r.dv}, 1, 4);
    const auto alone = [](const Tensor& all) { return test::sample(all, 1, 4); };
    CHECK(deviation(attention(alone(x.q), alone(x.k), alone(x.v), {4}).out, alone(r.out)) < 1e-6);
  });
}

TEST_CASE("SA7, SA9: neither a mask nor a length of one call is that of the next") {
  const Inputs x(2, 32), shorter(2, 16, 7);
  for_each_attention([&](const Attention& attention) {
    const AttentionRun first = attention(x.q, x.k, x.v, {32, 20}),
                       first_short = attention(shorter.q, shorter.k, shorter.v, {16, 16});
    const AttentionRun between = attention(x.q, x.k, x.v, {9, 32});
    check_same(attention(x.q, x.k, x.v, {32, 20}), first);
    check_same(attention(shorter.q, shorter.k, shorter.v, {16, 16}), first_short);
    CHECK_FALSE(bit_equal(between.out, first.out));
  });
}

TEST_CASE("SA8: LSH attention takes any length, whatever the chunk") {
  for (const int64_t time : {1, 31, 32, 33, 63, 64, 65}) {
    CAPTURE(time);
    const Inputs x(1, time);
    const Tensor hashes = test::random_hashes({1, time, 2, 2}, 3);
    const LshAttentionOptions options{.chunk = 32, .rounds = 2, .hashes = &hashes};
    CHECK(deviation(lsh_attention(x.q, x.k, x.v, options).value(), test::lsh_by_definition(x.q, x.k, x.v, options)) <
          1e-5);
  }
}
