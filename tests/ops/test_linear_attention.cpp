// Values of linear attention: against the quadratic form, the published cases, and what must always hold.
#include "linnet/ops/linear_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/attention.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

Tensor of(std::initializer_list<float> values) {
  return Tensor::from<float>(values, {1, static_cast<int64_t>(values.size()), 1, 1});
}

struct Run {
  Tensor out, dq, dk, dv;
};

/// Outputs and gradients for an upstream gradient g, or ones.
Run run(const Tensor& q, const Tensor& k, const Tensor& v, const LinearAttentionOptions& options, Tensor g = {}) {
  Tape tape;
  Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  Variable out = linear_attention(ql, kl, vl, options);
  tape.backward(out, g.defined() ? g : Tensor::full(out.shape(), 1, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

Tensor e1(std::initializer_list<double> values) { return Tensor::from<double>(values, {1, 3, 1, 2}); }

}  // namespace

TEST_CASE("the worked example E1: outputs and gradients") {
  const Tensor q = Tensor::from<float>({.5f, -1, 1, .25f, -2, 1.5f}, {1, 3, 1, 2});
  const Tensor k = Tensor::from<float>({-.5f, 1, 2, -1.5f, 0, .5f}, {1, 3, 1, 2});
  const Tensor v = Tensor::from<float>({1, -2, 3, .5f, -1, 4}, {1, 3, 1, 2});
  for_each_level([&] {
    const Run r = run(q, k, v, {.causal = true});
    CHECK(deviation(r.out, e1({1, -2, 2.2567912382, -.4290109522, .4116544076, .5899645923})) < 1e-6);
    CHECK(deviation(r.dq, e1({0, 0, .33041756, -.52866810, .11282625, -.04513050})) < 1e-6);
    CHECK(deviation(r.dk, e1({-.35984665, -.85762523, .36875855, .18700859, .02723236, .50305367})) < 1e-6);
    CHECK(deviation(r.dv, e1({1.88333092, 1.88333092, .72544595, .72544595, .39122313, .39122313})) < 1e-6);
    const Run all = run(q, k, v, {});
    CHECK(deviation(all.out, e1({1.6112152562, .8704927912, 1.3467104931, .8086359501, .4116544076, .5899645923})) <
          1e-6);
  });
}

TEST_CASE("phi keeps small values, and its slope large ones") {
  for_each_level([] {
    // q = 0 has phi = 1: unnormalised, the output is phi(k) and dk its slope.
    const LinearAttentionOptions raw{.causal = false, .normalise = false};
    const std::vector<std::pair<float, double>> wanted = {
        {-8, 3.3546263e-4}, {-17, 4.1399377e-8}, {-20, 2.0611536e-9}, {-50, 1.9287498e-22}, {-87, 1.6458115e-38}};
    for (const auto& [x, phi] : wanted) {
      const Run r = run(of({0}), of({x}), of({1}), raw);
      CHECK(r.out.item() == doctest::Approx(phi).epsilon(1e-5).scale(0));
      CHECK(r.dk.item() == doctest::Approx(phi).epsilon(1e-5).scale(0));
    }
    for (float x : {100.f, 1000.f}) {
      const Run r = run(of({0}), of({x}), of({1}), raw);
      CHECK(r.out.item() == x + 1);
      CHECK(r.dk.item() == 1);
    }
  });
}

TEST_CASE("tiny features: the first causal output is the first value, unless the denominator is no normal number") {
  for_each_level([] {
    for (float x : {-8.f, -20.f}) {
      const Run r = run(of({x}), of({x}), of({1}), {.causal = true});
      CHECK(r.out.item() == doctest::Approx(1).epsilon(1e-6));
      CHECK(std::abs(r.dq.item()) < 1e-6);
      CHECK(std::abs(r.dk.item()) < 1e-6);
      CHECK(r.dv.item() == doctest::Approx(1).epsilon(1e-6));
    }
    CHECK(run(of({-8}), of({-8}), of({1}), {.causal = true, .eps = 1e-6}).out.item() ==
          doctest::Approx(.10115).epsilon(1e-4));
    CHECK(run(of({-20}), of({-20}), of({1}), {.causal = true, .eps = 1e-6}).out.item() ==
          doctest::Approx(4.2e-12).epsilon(2e-2).scale(0));
    const Run none = run(of({-45}), of({-45}), of({1}), {.causal = true});
    for (const Tensor& x : {none.out, none.dq, none.dk, none.dv}) CHECK(x.item() == 0);
    // The denominator is about 4e-38, a normal number, and the upstream gradient large: nothing overflows.
    const Run edge = run(of({-43}), of({-43}), of({1}), {.causal = true}, of({100}));
    CHECK(edge.out.item() == doctest::Approx(1));
    CHECK(edge.dv.item() == doctest::Approx(100));
    CHECK(std::isfinite(edge.dq.item()));
    CHECK(std::isfinite(edge.dk.item()));
  });
}

TEST_CASE("a masked key is missing from the sum of values and from the denominator") {
  for_each_level([] {
    const KeyMask mask = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1}, {1, 3}));
    const Run r = run(of({1, 1, 1}), of({0, 1, 2}), of({0, 10, 20}), {.causal = true, .keys = &mask});
    CHECK(deviation(r.out, of({0, 10, 16})) < 1e-6);
    const Run without = run(of({1, 1}), of({1, 2}), of({10, 20}), {.causal = true});
    CHECK(deviation(r.out.reshape({3}).slice(1, 3), without.out.reshape({2})) < 1e-6);
  });
}

TEST_CASE("sums run over time, not over heads") {
  for_each_level([] {
    const Tensor k = Tensor::from<float>({1, 2, 3, 4}, {1, 2, 2, 1}), ones = Tensor::full({1, 2, 2, 1}, 1);
    CHECK(deviation(linear_attention(k, k, ones, {.causal = true}).value(), ones) < 1e-6);
  });
}

TEST_CASE("agrees with the quadratic form for every option") {
  for_each_level([] {
    manual_seed(1);
    const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1}, {2, 7}));
    const QueryMask queries = QueryMask::lengths({7, 4});
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const FeatureMap map : {FeatureMap::elu1, FeatureMap::relu, FeatureMap::identity})
        for (const bool causal : {false, true})
          for (const bool normalise : {false, true})
            for (const int masked : {0, 1, 2, 3}) {
              const LinearAttentionOptions options{.feature_map = map,
                                                   .causal = causal,
                                                   .normalise = normalise,
                                                   .eps = masked == 1 ? 1e-2 : 0,
                                                   .keys = masked & 1 ? &keys : nullptr,
                                                   .queries = masked & 2 ? &queries : nullptr};
              const double low = map == FeatureMap::elu1 ? -2 : 0.1;
              const Tensor q = Tensor::uniform({2, 7, 3, 5}, low, 2, dtype),
                           k = Tensor::uniform({2, 7, 3, 5}, low, 2, dtype);
              const Tensor v = Tensor::normal({2, 7, 3, 4}, 0, 1, dtype);
              const double gap = deviation(linear_attention(q, k, v, options).value(), quadratic(q, k, v, options));
              CHECK(gap < (dtype == Dtype::f32 ? 1e-5 : 1e-12));
            }
  });
}

TEST_CASE("any length: 1 to 9, around powers of two, and queries that are not as many as keys") {
  for_each_level([] {
    manual_seed(2);
    for (int64_t time : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 129})
      for (int64_t dim : {1, 2, 3, 16}) {
        // The sample stands between two samples of NaN: reading past either end shows.
        Tensor q = Tensor::full({3, time, 2, dim}, NAN), k = q.clone(), v = Tensor::full({3, time, 2, dim + 1}, NAN);
        for (Tensor* x : {&q, &k, &v}) {
          Tensor middle = x->slice(1, 2);
          middle.copy_from(Tensor::normal(middle.shape()));
        }
        for (const bool causal : {true, false}) {
          const LinearAttentionOptions options{.causal = causal};
          const Tensor qm = q.slice(1, 2), km = k.slice(1, 2), vm = v.slice(1, 2);
          const Run r = run(qm, km, vm, options);
          CHECK(deviation(r.out, quadratic(qm, km, vm, options)) < 1e-5);
          for (const Tensor& grad : {r.dq, r.dk, r.dv}) CHECK(deviation(grad, zeros_like(grad)) < 1e3);
        }
      }
    const Tensor q = Tensor::normal({2, 3, 2, 4}), k = Tensor::normal({2, 5, 2, 4}), v = Tensor::normal({2, 5, 2, 6});
    CHECK(deviation(linear_attention(q, k, v).value(), quadratic(q, k, v, {})) < 1e-5);
  });
}

TEST_CASE("what must hold for any input") {
  for_each_level([] {
    manual_seed(3);
    const Tensor q = Tensor::normal({2, 40, 3, 20}), k = Tensor::normal({2, 40, 3, 20}),
                 v = Tensor::normal({2, 40, 3, 7});
    const LinearAttentionOptions causal{.causal = true};
    const Tensor out = linear_attention(q, k, v, causal).value();

    {  // constant values come back
      for (const bool is_causal : {true, false})
        CHECK(deviation(linear_attention(q, k, Tensor::full(v.shape(), 2.5), {.causal = is_causal}).value(),
                        Tensor::full(v.shape(), 2.5)) < 1e-6);
    }
    {  // the first output is the first value, all lie within the values, the last row sees all
      const auto o = out.to_vector<float>(), values = v.to_vector<float>();
      for (size_t i = 0; i < 21; ++i) CHECK(o[i] == doctest::Approx(values[i]).epsilon(1e-5));
      const float low = *std::min_element(values.begin(), values.end()),
                  high = *std::max_element(values.begin(), values.end());
      CHECK(*std::min_element(o.begin(), o.end()) >= low - 1e-5f);
      CHECK(*std::max_element(o.begin(), o.end()) <= high + 1e-5f);
      const Tensor all = linear_attention(q, k, v).value().slice(0, 1).reshape({40, 21});
      CHECK(deviation(out.slice(0, 1).reshape({40, 21}).slice(39, 40), all.slice(39, 40)) < 1e-5);
    }
    {  // a changed token leaves earlier outputs as they were, bit for bit
      Tensor q2 = q.clone(), k2 = k.clone(), v2 = v.clone();
      q2.slice(0, 1).reshape({40, 60}).slice(17, 18).fill(3);
      k2.slice(0, 1).reshape({40, 60}).slice(17, 18).fill(-1);
      v2.slice(0, 1).reshape({40, 21}).slice(17, 18).fill(9);
      const Tensor changed = linear_attention(q2, k2, v2, causal).value();
      CHECK(bit_equal(changed.reshape({80, 21}).slice(0, 17).clone(), out.reshape({80, 21}).slice(0, 17).clone()));
      CHECK_FALSE(bit_equal(changed.slice(0, 1).clone(), out.slice(0, 1).clone()));
    }
    {  // scaling all phi(q) changes nothing
      const LinearAttentionOptions identity{.feature_map = FeatureMap::identity, .causal = true};
      const Tensor a = Tensor::uniform(q.shape(), 0.1, 1), b = Tensor::uniform(k.shape(), 0.1, 1);
      const Tensor scaled = compute::scale(a, 7);
      CHECK(deviation(linear_attention(scaled, b, v, identity).value(), linear_attention(a, b, v, identity).value()) <
            1e-5);
    }
    {  // for an upstream gradient of ones, dv sums to the number of queries that see anything
      const KeyMask keys = KeyMask::lengths({30, 0});
      const QueryMask queries = QueryMask::lengths({25, 40});
      const Run r = run(q, k, v, {.keys = &keys, .queries = &queries});
      double sum = 0;
      for (float x : r.dv.to_vector<float>()) sum += x;
      CHECK(sum == doctest::Approx(25 * 3 * 7).epsilon(1e-5));
      CHECK(bit_equal(r.dv.slice(1, 2).clone(), Tensor::zeros({1, 40, 3, 7})));
      CHECK(bit_equal(r.out.slice(1, 2).clone(), Tensor::zeros({1, 40, 3, 7})));
    }
  });
}

TEST_CASE("lengths: what lies behind them changes nothing, NaN included") {
  for_each_level([] {
    manual_seed(4);
    const Tensor q = Tensor::normal({1, 128, 2, 8}), k = Tensor::normal({1, 128, 2, 8}),
                 v = Tensor::normal({1, 128, 2, 8});
    const auto head = [](const Tensor& x) { return x.reshape({128, 16}).slice(0, 64).reshape({1, 64, 2, 8}).clone(); };
    const KeyMask keys = KeyMask::lengths({64});
    const QueryMask queries = QueryMask::lengths({64});
    for (const bool causal : {true, false}) {
      const LinearAttentionOptions options{.causal = causal, .keys = &keys, .queries = &queries};
      const Run r = run(q, k, v, options);
      const Run shorter = run(head(q), head(k), head(v), {.causal = causal});
      CHECK(deviation(head(r.out), shorter.out) < 1e-6);
      CHECK(deviation(head(r.dk), shorter.dk) < 1e-6);
      Tensor qn = q.clone(), kn = k.clone(), vn = v.clone();
      for (Tensor* x : {&qn, &kn, &vn}) x->reshape({128, 16}).slice(64, 128).fill(NAN);
      const Run junk = run(qn, kn, vn, options);
      CHECK(bit_equal(junk.out, r.out));
      CHECK(bit_equal(junk.dq, r.dq));
      CHECK(bit_equal(junk.dk, r.dk));
      CHECK(bit_equal(junk.dv, r.dv));
    }
  });
}

TEST_CASE("a long single head stays finite, and constant values come back") {
  manual_seed(5);
  const Shape shape{1, 43884, 1, 64};
  const Tensor q = Tensor::normal(shape), k = Tensor::normal(shape), ones = Tensor::full(shape, 1);
  CHECK(deviation(linear_attention(q, k, ones, {.causal = true}).value(), ones) < 1e-5);
}

TEST_CASE("many heads of one step give back the values") {
  for (int64_t batch : {8192, 8750}) {
    const Tensor v = Tensor::normal({batch, 1, 8, 2});
    CHECK(deviation(linear_attention(v, v, v, {.causal = true}).value(), v) < 1e-6);
  }
}

TEST_CASE("the number of threads changes no bit") {
  manual_seed(6);
  const Tensor q = Tensor::normal({4, 300, 4, 24}), k = Tensor::normal({4, 300, 4, 24}),
               v = Tensor::normal({4, 300, 4, 24});
  const int before = num_threads();
  set_num_threads(1);
  const Run one = run(q, k, v, {.causal = true});
  set_num_threads(3);
  const Run three = run(q, k, v, {.causal = true});
  set_num_threads(before);
  CHECK(bit_equal(one.out, three.out));
  CHECK(bit_equal(one.dq, three.dq));
  CHECK(bit_equal(one.dk, three.dk));
  CHECK(bit_equal(one.dv, three.dv));
}

TEST_CASE("the fused projection gives what its three parts give") {
  for_each_level([] {
    manual_seed(7);
    const Tensor qkv = Tensor::normal({2, 37, 3, 3, 10});
    const auto part = [](const Tensor& all, int64_t i) {
      return compute::slice(all, 2, i, i + 1).reshape({2, 37, 3, 10});
    };
    const KeyMask keys = KeyMask::lengths({37, 20});
    for (const bool causal : {true, false}) {
      const LinearAttentionOptions options{.causal = causal, .keys = &keys};
      const Tensor g = Tensor::normal({2, 37, 3, 10});
      const Run parts = run(part(qkv, 0), part(qkv, 1), part(qkv, 2), options, g);
      Tape tape;
      const Variable leaf = Variable::leaf(qkv);
      const Variable out = linear_attention_qkv(leaf, options);
      tape.backward(out, g);
      CHECK(bit_equal(out.value(), parts.out));
      CHECK(bit_equal(part(leaf.grad(), 0), parts.dq));
      CHECK(bit_equal(part(leaf.grad(), 1), parts.dk));
      CHECK(bit_equal(part(leaf.grad(), 2), parts.dv));
    }
  });
}

TEST_CASE("nothing in, nothing out") {
  for_each_level([] {
    for (const Shape& shape : {Shape{0, 5, 2, 3}, Shape{2, 0, 2, 3}, Shape{2, 5, 0, 3}}) {
      const Run r = run(Tensor::zeros(shape), Tensor::zeros(shape), Tensor::zeros(shape), {.causal = true});
      CHECK(r.out.shape() == shape);
      CHECK(r.dq.shape() == shape);
    }
    const Tensor none = Tensor::zeros({2, 5, 2, 0}), v = Tensor::full({2, 5, 2, 3}, 1);
    CHECK(bit_equal(linear_attention(none, none, v).value(), zeros_like(v)));  // an empty inner dimension gives zeros
    const Tensor q = Tensor::full({2, 3, 2, 4}, 1), no_keys = Tensor::zeros({2, 0, 2, 4});
    CHECK(bit_equal(run(q, no_keys, no_keys, {}).out, zeros_like(q)));
  });
}

TEST_CASE("errors of linear attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), v = Tensor::zeros({2, 5, 2, 6});
  CHECK(message_of([&] { linear_attention(q, k, v, {.causal = true}); }) ==
        "linear_attention: causal attention needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] {
          linear_attention(Tensor::zeros({2, 3, 8}), k, v);
        }) == "linear_attention: q (2, 3, 8) is not (batch, time, heads, dim)");
  CHECK(message_of([&] {
          linear_attention(q, Tensor::zeros({2, 5, 2, 3}), v);
        }) == "linear_attention: q (2, 3, 2, 4) and k (2, 5, 2, 3) differ in batch, heads or dim");
  CHECK(message_of([&] {
          linear_attention(q, k, Tensor::zeros({2, 4, 2, 6}));
        }) == "linear_attention: k (2, 5, 2, 4) and v (2, 4, 2, 6) differ in batch, time or heads");
  CHECK(message_of([&] {
          linear_attention_qkv(Tensor::zeros({2, 3, 2, 4}));
        }) == "linear_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  const KeyMask keys = KeyMask::lengths({5, 6});
  CHECK(message_of([&] { linear_attention(q, k, v, {.keys = &keys}); }) ==
        "linear_attention: key length 6 of sample 1 is above the time 5");
  CHECK_THROWS_AS(linear_attention(q, k.to(Dtype::f64), v), Error);
  CHECK_THROWS_AS(linear_attention(q.to(Dtype::i32), k.to(Dtype::i32), v.to(Dtype::i32)), Error);
}

TEST_CASE("options that are no numbers, or no feature map, are refused by every form") {
  const Tensor x = Tensor::zeros({1, 2, 1, 3}), one = Tensor::zeros({1, 1, 3});
  for (const double eps : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Tensor out;
    LinearState state;
    const LinearAttentionOptions options{.eps = eps};
    const auto refused = doctest::Contains("given, wanted: finite and not negative");
    CHECK_THROWS_WITH_AS(linear_attention(x, x, x, options), refused, Error);
    CHECK_THROWS_WITH_AS(linear_attention_qkv(Tensor::zeros({1, 2, 3, 1, 3}), options), refused, Error);
    CHECK_THROWS_WITH_AS(linear_attention_with_state(x, x, x, {}, options), refused, Error);
    CHECK_THROWS_WITH_AS(linear_attention_step(one, one, one, state, out, options), refused, Error);
    CHECK_THROWS_WITH_AS(linear_attention_step_qkv(Tensor::zeros({1, 3, 1, 3}), state, out, options), refused, Error);
    CHECK_FALSE(state.s.defined());
  }
  CHECK(message_of([&] { (void)linear_attention(x, x, x, {.feature_map = static_cast<FeatureMap>(9)}); }) ==
        "linear_attention: no feature map 9");
}
