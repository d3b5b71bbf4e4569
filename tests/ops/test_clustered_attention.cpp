#include "linnet/ops/clustered_attention.h"

#include "linnet/core/threads.h"
#include "linnet/ops/softmax_attention.h"
#include "support/attention_run.h"
#include "support/clustered_attention.h"
#include "support/gradients.h"
#include "support/levels.h"

using namespace linnet;
using test::all_zero;
using test::AttentionRun;
using test::clustered_by_definition;
using test::random_groups;
using test::run_attention;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

AttentionRun run(const Tensor& q, const Tensor& k, const Tensor& v, const ClusteredAttentionOptions& options) {
  return run_attention(
      q, k, v, [&](const auto& a, const auto& b, const auto& c) { return clustered_attention(a, b, c, options); });
}

/// Every query a cluster of its own.
Tensor own_groups(const Shape& shape) {
  std::vector<int32_t> groups;
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t t = 0; t < shape[1]; ++t)
      for (int64_t h = 0; h < shape[2]; ++h) groups.push_back(static_cast<int32_t>((t * 7 + h) % shape[1]));
  return Tensor::from(groups, shape);
}

struct Form {
  int64_t topk;
  bool causal;
};
const Form kForms[] = {{0, false}, {3, false}, {1000, false}, {3, true}, {1000, true}};

}  // namespace

TEST_CASE("clustered attention agrees with its definition: clustered, improved and causal") {
  for (const auto& [topk, causal] : kForms)
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {7, 7}, {5, 68}, {68, 5}, {150, 150}})
        for (const int64_t clusters : {1, 4, 90})
          for (int masked = 0; masked < 2; ++masked) {
            if (causal && queries != keys) continue;
            CAPTURE(topk);
            CAPTURE(causal);
            CAPTURE(queries);
            CAPTURE(clusters);
            const KeyMask key_mask = KeyMask::lengths({static_cast<int32_t>(keys), static_cast<int32_t>(keys / 2)});
            const QueryMask query_mask = QueryMask::lengths({1, static_cast<int32_t>(queries)});
            const Tensor groups = random_groups({2, queries, 1}, clusters);
            const ClusteredAttentionOptions options{.clusters = clusters,
                                                    .topk = topk,
                                                    .causal = causal,
                                                    .scale = clusters == 4 ? std::optional<double>(0.7) : std::nullopt,
                                                    .keys = masked ? &key_mask : nullptr,
                                                    .queries = masked ? &query_mask : nullptr,
                                                    .groups = &groups};
            const Tensor q = draw({2, queries, 1, 5}, 1, dtype), k = draw({2, keys, 1, 5}, 2, dtype),
                         v = draw({2, keys, 1, 3}, 3, dtype);
            CHECK(deviation(clustered_attention(q, k, v, options).value(), clustered_by_definition(q, k, v, options)) <
                  (dtype == Dtype::f32 ? 1e-5 : 1e-12));
          }
}

TEST_CASE("gradients of clustered attention") {
  const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {2, 7}));
  const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}, {2, 7}));
  for (const auto& [topk, causal] : kForms) {
    CAPTURE(topk);
    CAPTURE(causal);
    const auto check = [topk = topk, causal = causal](const Shape& q, const Shape& k, const Shape& v,
                                                      const KeyMask* km = nullptr, const QueryMask* qm = nullptr) {
      const Tensor groups = random_groups(q.first(3), 3);
      const ClusteredAttentionOptions options{
          .clusters = 3, .topk = topk, .causal = causal, .keys = km, .queries = qm, .groups = &groups};
      check_gradients("clustered_attention",
                      [&](const auto& x) { return clustered_attention(x[0], x[1], x[2], options); },
                      {draw(q, 1), draw(k, 2), draw(v, 3)});
    };
    for (const KeyMask* km : {static_cast<const KeyMask*>(nullptr), &keys})
      for (const QueryMask* qm : {static_cast<const QueryMask*>(nullptr), &queries})
        check({2, 7, 1, 2}, {2, 7, 1, 2}, {2, 7, 1, 3}, km, qm);
    check({1, 150, 1, 3}, {1, 150, 1, 3}, {1, 150, 1, 2});
    check({1, 0, 2, 3}, {1, 0, 2, 3}, {1, 0, 2, 3});
    check({0, 3, 2, 3}, {0, 3, 2, 3}, {0, 3, 2, 3});
    check({1, 3, 2, 0}, {1, 3, 2, 0}, {1, 3, 2, 2});
    check({1, 3, 2, 2}, {1, 3, 2, 2}, {1, 3, 2, 0});
    if (!causal) {
      check({1, 3, 2, 2}, {1, 6, 2, 2}, {1, 6, 2, 2});
      check({1, 3, 2, 2}, {1, 0, 2, 2}, {1, 0, 2, 2});
      check({1, 0, 2, 2}, {1, 3, 2, 2}, {1, 3, 2, 2});
    }
    const Tensor groups = random_groups({2, 4, 2}, 3);
    check_gradients("clustered_attention_qkv",
                    [&, topk = topk, causal = causal](const auto& x) {
                      return clustered_attention_qkv(
                          x[0], {.clusters = 3, .topk = topk, .causal = causal, .groups = &groups});
                    },
                    {draw({2, 4, 3, 2, 2}, 1)});
  }
}

TEST_CASE("clustered attention with every query a cluster of its own is softmax attention") {
  for_each_level([] {
    const int64_t time = 90;
    const Tensor q = draw({2, time, 2, 5}, 1), k = draw({2, time, 2, 5}, 2), v = draw({2, time, 2, 3}, 3);
    const Tensor groups = own_groups({2, time, 2});
    for (const bool causal : {false, true}) {
      const AttentionRun exact = run_attention(q, k, v, [&](const auto& a, const auto& b, const auto& c) {
        return softmax_attention(a, b, c, {.causal = causal});
      });
      for (const int64_t topk : {0, 5, 90}) {
        if (causal && topk < time) continue;
        CAPTURE(topk);
        const AttentionRun r = run(q, k, v, {.clusters = time, .topk = topk, .causal = causal, .groups = &groups});
        test::check_near(r, exact, 1e-12);
      }
    }
  });
}

TEST_CASE("clustered attention: a padded sample gives what it gives alone, and NaN behind a mask stays there") {
  const int64_t time = 90;
  const std::vector<int32_t> lengths{90, 70, 1, 0};
  const KeyMask keys = KeyMask::lengths(lengths);
  const QueryMask queries = QueryMask::lengths(lengths);
  Tensor q = draw({4, time, 2, 4}, 1), k = draw({4, time, 2, 4}, 2), v = draw({4, time, 2, 4}, 3);
  for (Tensor* x : {&q, &k, &v})
    for (int64_t b = 0; b < 4; ++b)
      x->reshape({4 * time, 8}).slice(b * time + lengths[static_cast<size_t>(b)], (b + 1) * time).fill(NAN);
  for (const auto& [topk, causal] : kForms) {
    CAPTURE(topk);
    CAPTURE(causal);
    Generator generator{5, 0, 0};
    const AttentionRun all = run(
        q, k, v,
        {.clusters = 8, .topk = topk, .causal = causal, .keys = &keys, .queries = &queries, .generator = &generator});
    for (int64_t b = 0; b < 4; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      const auto alone = [&](const Tensor& x) { return test::sample(x, b, length); };
      Generator same{5, 0, 0};
      CHECK(deviation(alone(all.out),
                      clustered_attention(alone(q), alone(k), alone(v),
                                          {.clusters = 8, .topk = topk, .causal = causal, .generator = &same})
                          .value()) < 1e-12);
      test::check_nothing_after({all.out, all.dq, all.dk, all.dv}, b, length);
    }
  }
}

TEST_CASE("clustered attention: the weight on a later step is exactly 0 where causal") {
  const int64_t time = 40;
  const Tensor q = draw({1, time, 1, 4}, 1), k = draw(q.shape(), 2), v = draw(q.shape(), 3);
  const Tensor groups = random_groups({1, time, 1}, 5);
  for (const int64_t i : {0, 13, 39}) {
    Tape tape;
    const Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
    const Variable out =
        clustered_attention(ql, kl, vl, {.clusters = 5, .topk = 12, .causal = true, .groups = &groups});
    Tensor seed = zeros_like(out.value());
    seed.reshape({time, 4}).slice(i, i + 1).fill(1);
    tape.backward(out, seed);
    for (const Tensor& x : {ql.grad(), kl.grad(), vl.grad()}) CHECK(all_zero(compute::slice(x, 1, i + 1, time)));
    if (i == 39) CHECK(!all_zero(vl.grad()));
  }
}

TEST_CASE("clustered attention: of keys that weigh the same the first are the top ones") {
  const Tensor q = draw({1, 9, 1, 2}, 1), k = Tensor::zeros({1, 9, 1, 2}, Dtype::f64), v = draw({1, 9, 1, 3}, 2);
  const Tensor groups = random_groups({1, 9, 1}, 2);
  const ClusteredAttentionOptions options{.clusters = 2, .topk = 4, .causal = true, .groups = &groups};
  const Tensor out = clustered_attention(q, k, v, options).value();
  CHECK(deviation(out, clustered_by_definition(q, k, v, options)) < 1e-12);
  CHECK(deviation(test::sample(out, 0, 1), test::sample(v, 0, 1)) < 1e-12);
}

TEST_CASE("clustered attention: constant values stay, whatever the clusters") {
  const Tensor q = draw({1, 60, 2, 4}, 1, Dtype::f32), k = draw({1, 33, 2, 4}, 2, Dtype::f32);
  const Tensor v = Tensor::full({1, 33, 2, 3}, 2.5);
  for (const int64_t topk : {0, 7, 33})
    CHECK(deviation(clustered_attention(q, k, v, {.clusters = 6, .topk = topk}).value(),
                    Tensor::full({1, 60, 2, 3}, 2.5)) < 1e-6);
}

TEST_CASE("clustered attention gives the same for any number of threads") {
  const Tensor x = draw({1, 300, 4, 16}, 1, Dtype::f32);
  const int before = num_threads();
  std::vector<AttentionRun> runs;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Generator generator{1, 0, 0};
    runs.push_back(run(x, x, x, {.clusters = 20, .topk = 8, .generator = &generator}));
  }
  set_num_threads(before);
  Generator generator{1, 0, 0};
  const Tensor planes = generator.normal({17, 32}, 0, 1);
  CHECK(bit_equal(run(x, x, x, {.clusters = 20, .topk = 8, .planes = &planes}).out, runs[0].out));
  test::check_near(runs[0], runs[1], 1e-300);
}

TEST_CASE("clustered attention keeps no scores") {
  const Variable q = Variable::leaf(draw({1, 1024, 2, 16}, 1, Dtype::f32));
  Tape tape;
  clustered_attention(q, q, q, {.clusters = 32, .topk = 8});
  // q, groups and log(sum exp) of the queries; top keys and log(sum exp) of the clusters
  CHECK(tape.bytes_kept() == 4 * 2 * (1024 * (16 + 1 + 1) + 32 * (8 + 1)));
}
