#include "linnet/ops/clustered_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "linnet/ops/softmax_attention.h"
#include "support/attention.h"
#include "support/clustered_attention.h"
#include "support/gradients.h"
#include "support/levels.h"
#include "support/modules.h"

using namespace linnet;
using test::clustered_by_definition;
using test::random_groups;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

struct Run {
  Tensor out, dq, dk, dv;
};

template <class Attention>
Run run(const Tensor& q, const Tensor& k, const Tensor& v, Attention attention) {
  Tape tape;
  Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  Variable out = attention(ql, kl, vl);
  tape.backward(out, test::normal(out.shape(), 77, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const ClusteredAttentionOptions& options) {
  return run(q, k, v,
             [&](const auto& a, const auto& b, const auto& c) { return clustered_attention(a, b, c, options); });
}

bool all_zero(const Tensor& x) { return compute::sum_of_squares(x) == 0; }

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
      const Run exact = run(q, k, v, [&](const auto& a, const auto& b, const auto& c) {
        return softmax_attention(a, b, c, {.causal = causal});
      });
      for (const int64_t topk : {0, 5, 90}) {
        if (causal && topk < time) continue;
        CAPTURE(topk);
        const Run r = run(q, k, v, {.clusters = time, .topk = topk, .causal = causal, .groups = &groups});
        CHECK(deviation(r.out, exact.out) < 1e-12);
        CHECK(deviation(r.dq, exact.dq) < 1e-12);
        CHECK(deviation(r.dk, exact.dk) < 1e-12);
        CHECK(deviation(r.dv, exact.dv) < 1e-12);
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
    const Run all = run(
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
      for (const Tensor& x : {all.out, all.dq, all.dk, all.dv}) {
        CHECK(compute::all_finite(x));
        CHECK(all_zero(compute::slice(x.slice(b, b + 1), 1, length, time)));
      }
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

TEST_CASE("query_clusters puts queries that lie together together, and repeats itself") {
  // Four directions, far apart, and a little noise.
  const int64_t time = 64;
  std::vector<float> values;
  const std::vector<float> noise = draw({time, 2}, 1, Dtype::f32).to_vector<float>();
  for (int64_t t = 0; t < time; ++t)
    for (int64_t d = 0; d < 2; ++d)
      values.push_back((d == t / 2 % 2 ? 30.0f : 0.0f) * (t % 2 ? 1 : -1) +
                       0.1f * noise[static_cast<size_t>(2 * t + d)]);
  const Tensor q = Tensor::from(values, {1, time, 1, 2});
  Generator generator{2, 0, 0}, same = generator;
  const Tensor groups = query_clusters(q, {.clusters = 10, .bits = 60}, generator);
  CHECK(groups.shape() == Shape{1, time, 1});
  CHECK(bit_equal(query_clusters(q, {.clusters = 10, .bits = 60}, same), groups));
  const int32_t* group = groups.data<int32_t>();
  for (int64_t s = 0; s < time; ++s) {
    CHECK((group[s] >= 0 && group[s] < 10));
    for (int64_t t = 0; t < time; ++t)
      if (s % 4 != t % 4) CHECK(group[s] != group[t]);
  }
  const Tensor random = draw({1, 200, 2, 8}, 3);
  const auto after = [&](int64_t iterations) {
    Generator planes{2, 0, 0};
    return query_clusters(random, {.clusters = 10, .iterations = iterations}, planes);
  };
  CHECK(!bit_equal(after(1), after(2)));
  CHECK(!bit_equal(after(2), after(10)));
  CHECK(bit_equal(after(200), after(1000)));  // nothing moves any more
  // With room for one cluster there is one; a masked query belongs to the first.
  const QueryMask some = QueryMask::lengths({0});
  for (const Tensor& x :
       {query_clusters(q, {.clusters = 1}, generator), query_clusters(q, {.clusters = 9}, generator, &some)})
    CHECK(x.to_vector<int32_t>() == std::vector<int32_t>(static_cast<size_t>(time), 0));
}

TEST_CASE("clustered attention gives the same for any number of threads") {
  const Tensor x = draw({1, 300, 4, 16}, 1, Dtype::f32);
  const int before = num_threads();
  std::vector<Run> runs;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Generator generator{1, 0, 0};
    runs.push_back(run(x, x, x, {.clusters = 20, .topk = 8, .generator = &generator}));
  }
  set_num_threads(before);
  Generator generator{1, 0, 0};
  const Tensor planes = generator.normal({17, 32}, 0, 1);
  CHECK(bit_equal(run(x, x, x, {.clusters = 20, .topk = 8, .planes = &planes}).out, runs[0].out));
  CHECK(bit_equal(runs[0].out, runs[1].out));
  CHECK(bit_equal(runs[0].dq, runs[1].dq));
  CHECK(bit_equal(runs[0].dk, runs[1].dk));
  CHECK(bit_equal(runs[0].dv, runs[1].dv));
}

TEST_CASE("clustered attention keeps no scores") {
  const Variable q = Variable::leaf(draw({1, 1024, 2, 16}, 1, Dtype::f32));
  Tape tape;
  clustered_attention(q, q, q, {.clusters = 32, .topk = 8});
  // q, groups and log(sum exp) of the queries; top keys and log(sum exp) of the clusters
  CHECK(tape.bytes_kept() == 4 * 2 * (1024 * (16 + 1 + 1) + 32 * (8 + 1)));
}

TEST_CASE("errors of clustered attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), one = Tensor::zeros({2, 1, 3});
  CHECK(message_of([&] { clustered_attention(q, one, q, {.clusters = 2}); }) ==
        "clustered_attention: k (2, 1, 3) is not (batch, time, heads, dim)");
  CHECK(message_of([&] { clustered_attention(q, k, k, {.clusters = 2, .topk = 1, .causal = true}); }) ==
        "clustered_attention: causal attention needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] { clustered_attention_qkv(q, {.clusters = 2}); }) ==
        "clustered_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  CHECK(message_of([&] { clustered_attention(q, q, q, {}); }) ==
        "clustered_attention: 0 clusters given, 1 or more wanted");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .topk = -1}); }) ==
        "clustered_attention: topk -1 given, 0 or more wanted");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .bits = 64}); }) ==
        "clustered_attention: 64 bits given, 1 to 63 wanted");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .iterations = 0}); }) ==
        "clustered_attention: 0 iterations given, 1 or more wanted");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .causal = true}); }) ==
        "clustered_attention: cannot be causal without topk, since the members of a cluster share one softmax over all "
        "keys");
  const Tensor groups = Tensor::from<int32_t>({0, 1, 0, 1, 0, 1, 0, 1, 0, 2, 0, 1}, {2, 3, 2}),
               flat = Tensor::zeros({2, 3}, Dtype::i32);
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .groups = &groups}); }) ==
        "clustered_attention: group 2 of query 1 of sample 1, but there are 2 clusters");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .groups = &flat}); }) ==
        "clustered_attention: groups (2, 3) i32 are not i32 (batch, queries, heads) = (2, 3, 2)");
  CHECK(message_of([&] { clustered_attention(q, q, q, {.clusters = 2, .planes = &one}); }) ==
        "clustered_attention: planes (2, 1, 3) f32 are not f32 (dim + 1, bits) = (5, 32)");
  Generator generator;
  CHECK(message_of([&] { query_clusters(one, {.clusters = 2}, generator); }) ==
        "query_clusters: q (2, 1, 3) is not (batch, time, heads, dim)");
}
