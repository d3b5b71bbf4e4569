// Gradients of linear attention against central differences, in f64, for every variant.
#include "linnet/core/random.h"
#include "support/gradients.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

Tensor random(const Shape& shape, FeatureMap map) {
  return map == FeatureMap::elu1 ? Tensor::normal(shape, 0, 1, Dtype::f64)
                                 : Tensor::uniform(shape, 0.1, 1.5, Dtype::f64);
}

void check(const LinearAttentionOptions& options, int64_t batch, int64_t queries, int64_t keys, int64_t heads,
           int64_t dim, int64_t width) {
  const Tensor q = random({batch, queries, heads, dim}, options.feature_map),
               k = random({batch, keys, heads, dim}, options.feature_map),
               v = Tensor::normal({batch, keys, heads, width}, 0, 1, Dtype::f64);
  check_gradients("linear_attention", [&](const auto& x) { return linear_attention(x[0], x[1], x[2], options); },
                  {q, k, v});
}

}  // namespace

TEST_CASE("gradients of linear attention") {
  for_each_level([] {
    manual_seed(1);
    for (const FeatureMap map : {FeatureMap::elu1, FeatureMap::relu, FeatureMap::identity})
      for (const bool causal : {true, false})
        for (const bool normalise : {true, false})
          for (const double eps : {0.0, 0.1}) {
            const LinearAttentionOptions options{
                .feature_map = map, .causal = causal, .normalise = normalise, .eps = eps};
            check(options, 1, 4, 4, 1, 2, 3);
            check(options, 2, 5, causal ? 5 : 7, 2, 3, 2);
          }
    check({.causal = true}, 2, 70, 70, 2, 33, 35);
    check({}, 1, 65, 37, 2, 17, 19);
    check({.causal = true}, 1, 0, 0, 2, 3, 3);
    check({.causal = true}, 0, 4, 4, 2, 3, 3);
  });
}

TEST_CASE("gradients of linear attention with masks") {
  for_each_level([] {
    manual_seed(2);
    const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 0, 0, 0, 0, 0}, {2, 5}));
    const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 0, 1, 1, 1}, {2, 5}));
    for (const bool causal : {true, false}) {
      check({.causal = causal, .keys = &keys}, 2, 5, 5, 2, 2, 2);
      check({.causal = causal, .queries = &queries}, 2, 5, 5, 2, 2, 2);
      check({.causal = causal, .normalise = false, .keys = &keys, .queries = &queries}, 2, 5, 5, 2, 2, 2);
      check({.causal = causal, .eps = 0.5, .keys = &keys, .queries = &queries}, 2, 5, 5, 2, 2, 2);
    }
  });
}

TEST_CASE("gradients of the fused form") {
  for_each_level([] {
    manual_seed(3);
    const KeyMask keys = KeyMask::lengths({3, 1});
    for (const bool causal : {true, false})
      for (const KeyMask* mask : {static_cast<const KeyMask*>(nullptr), &keys})
        check_gradients("linear_attention_qkv",
                        [&](const auto& x) { return linear_attention_qkv(x[0], {.causal = causal, .keys = mask}); },
                        {Tensor::normal({2, 3, 3, 2, 2}, 0, 1, Dtype::f64)});
  });
}

TEST_CASE("gradients through the initial and the final state") {
  for_each_level([] {
    manual_seed(4);
    const Tensor q = Tensor::normal({2, 3, 2, 2}, 0, 1, Dtype::f64), k = Tensor::normal({2, 3, 2, 2}, 0, 1, Dtype::f64),
                 v = Tensor::normal({2, 3, 2, 3}, 0, 1, Dtype::f64);
    const Tensor s = Tensor::normal({2, 2, 2, 3}, 0, 1, Dtype::f64), z = Tensor::uniform({2, 2, 2}, 0.5, 1, Dtype::f64);
    const KeyMask keys = KeyMask::lengths({2, 3});
    for (const KeyMask* mask : {static_cast<const KeyMask*>(nullptr), &keys})
      for (const int wanted : {0, 1, 2}) {  // the output, or one of the final sums
        const auto pick = [&](const LinearAttentionResult& r) {
          return wanted == 0 ? r.out : wanted == 1 ? r.state.s : r.state.z;
        };
        check_gradients("linear_attention_with_state",
                        [&](const auto& x) {
                          return pick(linear_attention_with_state(x[0], x[1], x[2], {x[3], x[4]}, {.keys = mask}));
                        },
                        {q, k, v, s, z});
        check_gradients(
            "linear_attention_with_state",
            [&](const auto& x) { return pick(linear_attention_with_state(x[0], x[1], x[2], {}, {.keys = mask})); },
            {q, k, v});
      }
  });
}

TEST_CASE("a sequence in two pieces has the gradients of the whole") {
  for_each_level([] {
    manual_seed(5);
    const Tensor q = Tensor::normal({1, 6, 1, 4}), k = Tensor::normal({1, 6, 1, 4}), v = Tensor::normal({1, 6, 1, 4});
    const auto piece = [](const Tensor& x, int64_t begin, int64_t end) {
      return Variable::leaf(x.reshape({6, 4}).slice(begin, end).clone().reshape({1, end - begin, 1, 4}));
    };
    Tape whole;
    const Variable qw = Variable::leaf(q), kw = Variable::leaf(k), vw = Variable::leaf(v);
    const Variable out = linear_attention(qw, kw, vw, {.causal = true});
    whole.backward(out, Tensor::full(out.shape(), 1));
    Tape parts;
    const Variable k1 = piece(k, 0, 2), k2 = piece(k, 2, 6);
    const auto first = linear_attention_with_state(piece(q, 0, 2), k1, piece(v, 0, 2), {});
    const auto second = linear_attention_with_state(piece(q, 2, 6), k2, piece(v, 2, 6), first.state);
    parts.backward({first.out, second.out}, {Tensor::full({1, 2, 1, 4}, 1), Tensor::full({1, 4, 1, 4}, 1)});
    CHECK(deviation(k1.grad(), kw.grad().reshape({6, 4}).slice(0, 2).reshape({1, 2, 1, 4})) < 1e-5);
    CHECK(deviation(k2.grad(), kw.grad().reshape({6, 4}).slice(2, 6).reshape({1, 4, 1, 4})) < 1e-5);
  });
}
