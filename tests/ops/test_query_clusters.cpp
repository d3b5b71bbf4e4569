// The clusters of clustered attention, and its errors.
#include "linnet/ops/clustered_attention.h"
#include "support/attention_run.h"

using namespace linnet;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

}  // namespace

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
  const std::vector<int32_t> all = groups.to_vector<int32_t>();
  const int32_t* group = all.data();
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
