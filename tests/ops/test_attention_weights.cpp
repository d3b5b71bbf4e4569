#include "linnet/ops/attention_weights.h"

#include "linnet/core/compute.h"
#include "support/attention.h"
#include "support/levels.h"

using namespace linnet;

namespace {

const KeyMask kKeys = KeyMask::lengths({5, 0, 3});

/// Weights (batch, queries, heads, keys) times v, by plain loops, in f64.
Tensor weighted(const Tensor& weights, const Tensor& v) {
  const Tensor w = compute::transpose(weights.to(Dtype::f64), 1, 2);  // (batch, heads, queries, keys)
  return compute::transpose(compute::matmul(w, compute::transpose(v.to(Dtype::f64), 1, 2)), 1, 2);
}

/// f(q, k, v) for ragged sizes: as many keys as queries where causal.
template <class F>
void for_each_size(bool causal, const F& f) {
  for (const auto& [queries, keys] : {std::pair(7, 5), std::pair(1, 5), std::pair(0, 5), std::pair(5, 5)}) {
    if (causal && queries != keys) continue;
    f(Tensor::normal({3, queries, 2, 6}, 0, 1), Tensor::normal({3, keys, 2, 6}, 0, 1),
      Tensor::normal({3, keys, 2, 9}, 0, 1));
  }
}

template <class Options, class Attend>
void check_weights(Options options, const Attend& attend, bool sum_to_one = true) {
  for_each_level([&] {
    for (const bool causal : {false, true}) {
      for (const KeyMask* keys : {static_cast<const KeyMask*>(nullptr), &kKeys}) {
        options.causal = causal, options.keys = keys;
        for_each_size(causal, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
          const Tensor weights = attention_weights(q, k, options);
          REQUIRE(weights.shape() == Shape{3, q.size(1), 2, k.size(1)});
          CHECK(deviation(weighted(weights, v), attend(q, k, v, options).value()) < 1e-5);
          const std::vector<float> w = weights.to_vector<float>();
          const size_t width = static_cast<size_t>(k.size(1));
          for (size_t row = 0; row < w.size() / width; ++row) {
            double sum = 0;
            for (size_t j = 0; j < width; ++j) {
              REQUIRE(w[row * width + j] >= 0);
              sum += w[row * width + j];
            }
            const bool no_key = keys && row / (static_cast<size_t>(q.size(1)) * 2) == 1;  // of the second sample
            if (sum_to_one) REQUIRE(sum == doctest::Approx(no_key ? 0 : 1));
          }
        });
      }
    }
  });
}

}  // namespace

TEST_CASE("attention weights: rows sum to 1, and weights times v are the attention's output") {
  check_weights(LinearAttentionOptions{}, [](const Tensor& q, const Tensor& k, const Tensor& v, const auto& options) {
    return linear_attention(q, k, v, options);
  });
  check_weights(
      LinearAttentionOptions{.feature_map = FeatureMap::relu},
      [](const Tensor& q, const Tensor& k, const Tensor& v, const auto& options) {
        return linear_attention(q, k, v, options);
      },
      false);  // a row may be nothing but zeros
  check_weights(SoftmaxAttentionOptions{}, [](const Tensor& q, const Tensor& k, const Tensor& v, const auto& options) {
    return softmax_attention(q, k, v, options);
  });
}

TEST_CASE("attention weights: efficient attention's times v are its output") {
  for_each_size(false, [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    const EfficientAttentionOptions options{.keys = &kKeys};
    CHECK(deviation(weighted(attention_weights(q, k, options), v), efficient_attention(q, k, v, options).value()) <
          1e-5);
  });
}

TEST_CASE("attention weights: by hand, for one query and two keys") {
  const Tensor q = Tensor::from<float>({1}, {1, 1, 1, 1}), k = Tensor::from<float>({0, 2}, {1, 2, 1, 1});
  // phi(1) = 2; phi(0) = 1 and phi(2) = 3
  const auto linear = attention_weights(q, k, LinearAttentionOptions{}).to_vector<float>();
  CHECK(linear[0] == doctest::Approx(0.25));
  CHECK(linear[1] == doctest::Approx(0.75));
  const auto softmax = attention_weights(q, k, SoftmaxAttentionOptions{}).to_vector<float>();
  CHECK(softmax[0] == doctest::Approx(1 / (1 + std::exp(2.0))));
}

TEST_CASE("attention weights: what does not fit is refused") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 6});
  CHECK(message_of([&] { attention_weights(q, k, LinearAttentionOptions{}); }) ==
        "attention_weights: q (2, 3, 2, 4) and k (2, 5, 2, 6) differ in batch, heads or dim");
  CHECK(message_of([&] {
          attention_weights(q, Tensor::zeros({2, 5, 2, 4}), SoftmaxAttentionOptions{.causal = true});
        }) == "attention_weights: causal attention needs as many queries as keys, but q has 3 and k has 5");
}
