#include "linnet/ops/softmax_attention.h"

#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/attention.h"
#include "support/gradients.h"
#include "support/levels.h"

using namespace linnet;

namespace {

Tensor quadratic(const Tensor& q, const Tensor& k, const Tensor& v, const SoftmaxAttentionOptions& options) {
  ReferenceMasks masks;
  masks.causal = options.causal;
  if (options.keys) masks.keys = options.keys->steps("test", "key", k.size(0), k.size(1), q.device());
  if (options.queries) masks.queries = options.queries->steps("test", "query", q.size(0), q.size(1), q.device());
  if (options.pairs) masks.pairs = options.pairs->pairs("test", q.size(1), k.size(1), q.device());
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(3))));
  return quadratic_attention(q, k, v, masks, [&](const double* a, const double* b, int64_t dim) {
    double sum = 0;
    for (int64_t d = 0; d < dim; ++d) sum += a[d] * b[d];
    return std::exp(scale * sum);
  });
}

struct Run {
  Tensor out, dq, dk, dv;
};

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const SoftmaxAttentionOptions& options, Tensor g = {}) {
  Tape tape;
  Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  Variable out = softmax_attention(ql, kl, vl, options);
  tape.backward(out, g.defined() ? g : Tensor::full(out.shape(), 1, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

/// 0 or 1, about a third of them 0.
Tensor random_mask(const Shape& shape) {
  const auto drawn = Tensor::uniform(shape).to_vector<float>();
  std::vector<uint8_t> mask;
  for (float x : drawn) mask.push_back(x > 0.33f);
  return Tensor::from(mask, shape);
}

void check(const SoftmaxAttentionOptions& options, int64_t batch, int64_t queries, int64_t keys, int64_t heads,
           int64_t dim, int64_t width) {
  const Tensor q = Tensor::normal({batch, queries, heads, dim}, 0, 1, Dtype::f64),
               k = Tensor::normal({batch, keys, heads, dim}, 0, 1, Dtype::f64),
               v = Tensor::normal({batch, keys, heads, width}, 0, 1, Dtype::f64);
  check_gradients("softmax_attention", [&](const auto& x) { return softmax_attention(x[0], x[1], x[2], options); },
                  {q, k, v});
}

}  // namespace

TEST_CASE("softmax attention agrees with its definition for every mask") {
  for_each_level([] {
    manual_seed(1);
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{7, 7}, {1, 1}, {64, 64}, {65, 130}, {150, 150}})
        for (const bool causal : {false, true})
          for (int masked = 0; masked < 8; ++masked) {
            if (causal && queries != keys) continue;
            const KeyMask key_mask = KeyMask::array(random_mask({2, keys}));
            const QueryMask query_mask = QueryMask::array(random_mask({2, queries}));
            const PairMask pair_mask(random_mask({queries, keys}));
            const SoftmaxAttentionOptions options{.causal = causal,
                                                  .scale = masked == 5 ? std::optional<double>(0.7) : std::nullopt,
                                                  .keys = masked & 1 ? &key_mask : nullptr,
                                                  .queries = masked & 2 ? &query_mask : nullptr,
                                                  .pairs = masked & 4 ? &pair_mask : nullptr};
            const Tensor q = Tensor::normal({2, queries, 2, 5}, 0, 1, dtype),
                         k = Tensor::normal({2, keys, 2, 5}, 0, 1, dtype),
                         v = Tensor::normal({2, keys, 2, 3}, 0, 1, dtype);
            CHECK(deviation(softmax_attention(q, k, v, options).value(), quadratic(q, k, v, options)) <
                  (dtype == Dtype::f32 ? 1e-5 : 1e-12));
          }
  });
}

TEST_CASE("gradients of softmax attention") {
  for_each_level([] {
    manual_seed(2);
    for (const bool causal : {true, false})
      for (int masked = 0; masked < 8; ++masked) {
        const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 0, 0, 0, 0, 0}, {2, 5}));
        const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 0, 1, 1, 1}, {2, 5}));
        const PairMask pairs(random_mask({5, 5}));
        check({.causal = causal,
               .keys = masked & 1 ? &keys : nullptr,
               .queries = masked & 2 ? &queries : nullptr,
               .pairs = masked & 4 ? &pairs : nullptr},
              2, 5, 5, 1, 2, 3);
      }
    check({.causal = true}, 2, 130, 130, 2, 5, 3);
    check({.scale = 0.3}, 1, 67, 70, 2, 3, 4);
    check({}, 1, 3, 0, 2, 3, 4);
    check({.causal = true}, 0, 3, 3, 2, 3, 4);
    check({}, 1, 3, 4, 2, 0, 4);
    for (const bool causal : {true, false})
      check_gradients("softmax_attention_qkv",
                      [&](const auto& x) { return softmax_attention_qkv(x[0], {.causal = causal}); },
                      {Tensor::normal({2, 3, 3, 2, 2}, 0, 1, Dtype::f64)});
  });
}

TEST_CASE("f32 gradients agree with f64 over several tiles") {
  for_each_level([] {
    manual_seed(3);
    const Shape shape{2, 150, 2, 16};
    const Tensor q = Tensor::normal(shape), k = Tensor::normal(shape), v = Tensor::normal(shape),
                 g = Tensor::normal(shape);
    const auto wide = [](const Tensor& x) { return x.to(Dtype::f64); };
    const Run single = run(q, k, v, {.causal = true}, g),
              twice = run(wide(q), wide(k), wide(v), {.causal = true}, wide(g));
    CHECK(deviation(single.dq, twice.dq) < 1e-5);
    CHECK(deviation(single.dk, twice.dk) < 1e-5);
    CHECK(deviation(single.dv, twice.dv) < 1e-5);
  });
}

TEST_CASE("a row with no allowed key is 0, and so is its gradient; the others stand") {
  for_each_level([] {
    manual_seed(4);
    const Tensor q = Tensor::normal({1, 4, 2, 3}), k = Tensor::normal({1, 4, 2, 3}), v = Tensor::normal({1, 4, 2, 3});
    const PairMask pairs(Tensor::from<uint8_t>({1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1}, {4, 4}));
    const Run masked = run(q, k, v, {.pairs = &pairs}), free = run(q, k, v, {});
    const auto row = [](const Tensor& x, int64_t i) { return x.reshape({4, 6}).slice(i, i + 1).clone(); };
    CHECK(bit_equal(row(masked.out, 2), Tensor::zeros({1, 6})));
    CHECK(bit_equal(row(masked.dq, 2), Tensor::zeros({1, 6})));
    for (int64_t i : {0, 1, 3}) CHECK(bit_equal(row(masked.out, i), row(free.out, i)));
  });
}

TEST_CASE("a key mask forbids keys, not queries; masks of one call are not those of the next") {
  for_each_level([] {
    const Tensor zero = Tensor::zeros({1, 4, 1, 1}), v = Tensor::from<float>({1, 2, 4, 8}, {1, 4, 1, 1});
    const KeyMask first = KeyMask::lengths({2}), second = KeyMask::lengths({3});
    CHECK(deviation(softmax_attention(zero, zero, v, {.keys = &first}).value(), Tensor::full(v.shape(), 1.5)) < 1e-6);
    CHECK(deviation(softmax_attention(zero, zero, v, {.keys = &second}).value(), Tensor::full(v.shape(), 7. / 3)) <
          1e-6);
    const Tensor shorter = Tensor::full({1, 2, 1, 1}, 3);  // and no length is frozen by the first call
    CHECK(deviation(softmax_attention(shorter, shorter, shorter).value(), shorter) < 1e-6);
  });
}

TEST_CASE("NaN behind a mask stays there") {
  for_each_level([] {
    manual_seed(5);
    const int64_t time = 100;
    const Tensor q = Tensor::normal({1, time, 1, 4}), k = Tensor::normal({1, time, 1, 4}),
                 v = Tensor::normal({1, time, 1, 4});
    const auto spoil = [](const Tensor& x, int64_t begin) {
      Tensor y = x.clone();
      y.reshape({x.size(1), 4}).slice(begin, x.size(1)).fill(NAN);
      return y;
    };
    const auto head = [](const Tensor& x, int64_t end) { return x.reshape({x.size(1), 4}).slice(0, end).clone(); };
    const KeyMask keys = KeyMask::lengths({70});
    const QueryMask queries = QueryMask::lengths({80});
    const SoftmaxAttentionOptions options{.keys = &keys, .queries = &queries};
    const Run clean = run(q, k, v, options), spoilt = run(spoil(q, 80), spoil(k, 70), spoil(v, 70), options);
    CHECK(bit_equal(clean.out, spoilt.out));
    CHECK(bit_equal(clean.dq, spoilt.dq));
    CHECK(bit_equal(clean.dk, spoilt.dk));
    CHECK(bit_equal(clean.dv, spoilt.dv));
    // Causal, or forbidden pair by pair: the same within rounding.
    std::vector<uint8_t> columns;
    for (int64_t i = 0; i < time * time; ++i) columns.push_back(i % time < 70);
    const PairMask pairs(Tensor::from(columns, {time, time}));
    const Tensor paired = softmax_attention(q, k, v, {.pairs = &pairs}).value();
    CHECK(deviation(softmax_attention(q, spoil(k, 70), spoil(v, 70), {.pairs = &pairs}).value(), paired) < 1e-6);
    const Tensor causal = softmax_attention(q, k, v, {.causal = true}).value();
    const Tensor late = softmax_attention(q, spoil(k, 70), spoil(v, 70), {.causal = true}).value();
    CHECK(deviation(head(late, 70), head(causal, 70)) < 1e-6);
  });
}

TEST_CASE("a changed token leaves earlier outputs as they were, and the number of threads changes no bit") {
  manual_seed(6);
  const Shape shape{1, 150, 6, 16};
  const Tensor q = Tensor::normal(shape), k = Tensor::normal(shape), v = Tensor::normal(shape);
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
  Tensor k2 = k.clone(), v2 = v.clone();
  k2.reshape({150, 96}).slice(100, 101).fill(2);
  v2.reshape({150, 96}).slice(100, 101).fill(2);
  const Tensor changed = softmax_attention(q, k2, v2, {.causal = true}).value();
  CHECK(bit_equal(changed.reshape({150, 96}).slice(0, 100).clone(), one.out.reshape({150, 96}).slice(0, 100).clone()));
}

TEST_CASE("large scores neither overflow nor vanish") {
  for_each_level([] {
    const Tensor q = Tensor::full({1, 2, 1, 1}, 1e4), k = Tensor::from<float>({1e4f, -1e4f}, {1, 2, 1, 1}),
                 v = Tensor::from<float>({3, 5}, {1, 2, 1, 1});
    const Run r = run(q, k, v, {});
    CHECK(deviation(r.out, Tensor::full({1, 2, 1, 1}, 3)) == 0);
    for (const Tensor& grad : {r.dq, r.dk, r.dv})
      for (float x : grad.to_vector<float>()) CHECK(std::isfinite(x));
  });
}

TEST_CASE("backward keeps no scores: bytes grow with time, not with its square") {
  const auto peak = [](int64_t time) {
    const Tensor x = Tensor::normal({1, time, 2, 16});
    Tape tape;
    const Variable q = Variable::leaf(x), out = softmax_attention(q, q, q, {.causal = true});
    CHECK(tape.bytes_kept() == 4 * time * 2 * (16 + 16 + 1));
    const Tensor seed = Tensor::full(out.shape(), 1);
    reset_peak(default_device());
    const int64_t before = memory_stats(default_device()).live;
    tape.backward(out, seed);
    return static_cast<double>(memory_stats(default_device()).peak - before);
  };
  const int64_t time = default_device() == Device::cuda ? 256 : 1024;  // the emulation is slow
  CHECK(peak(2 * time) <= 2.1 * peak(time));
}

TEST_CASE("steps with a cache equal the whole run; a copied cache is its own") {
  for_each_level([] {
    manual_seed(7);
    const int64_t time = 70;  // the cache grows on the way
    const Tensor qkv = Tensor::normal({2, time, 3, 2, 5});
    const Tensor whole = softmax_attention_qkv(qkv, {.causal = true}).value();
    KeyValueCache cache, copy;
    Tensor out, copied;
    for (int64_t t = 0; t < time; ++t) {
      const Tensor now = compute::slice(qkv, 1, t, t + 1).reshape({2, 3, 2, 5}),
                   wanted = compute::slice(whole, 1, t, t + 1).reshape({2, 2, 5});
      if (t == 20) {
        copy = cache;
        softmax_attention_step_qkv(Tensor::full(now.shape(), 5), copy, copied);
      }
      softmax_attention_step_qkv(now, cache, out);
      CHECK(deviation(out, wanted) < 1e-5);
    }
    CHECK(cache.length == time);
    CHECK(copy.length == 21);
    const Tensor one = Tensor::normal({2, 2, 5}), v = Tensor::normal({2, 2, 3});
    KeyValueCache fresh;
    Tensor first;
    softmax_attention_step(one, one, v, fresh, first);
    CHECK(deviation(first, v) < 1e-6);
  });
}

TEST_CASE("errors of softmax attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), v = Tensor::zeros({2, 5, 2, 6});
  CHECK(message_of([&] { softmax_attention(q, k, v, {.causal = true}); }) ==
        "softmax_attention: causal attention needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] { softmax_attention_qkv(q); }) ==
        "softmax_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  const PairMask pairs(Tensor::zeros({5, 3}, Dtype::u8));
  CHECK(message_of([&] { softmax_attention(q, k, v, {.pairs = &pairs}); }) ==
        "softmax_attention: pair mask (5, 3) is not (queries, keys) = (3, 5)");
  KeyValueCache cache;
  Tensor out;
  softmax_attention_step(Tensor::zeros({2, 1, 3}), Tensor::zeros({2, 1, 3}), Tensor::zeros({2, 1, 4}), cache, out);
  CHECK(message_of([&] {
          softmax_attention_step(Tensor::zeros({2, 1, 4}), Tensor::zeros({2, 1, 4}), Tensor::zeros({2, 1, 4}), cache,
                                 out);
        }) ==
        "softmax_attention_step: cache k (2, 16, 1, 3) is not (batch, capacity, heads, dim) for a step (2, 1, 4)");
  Tape tape;
  CHECK(message_of([&] {
          softmax_attention_step(Tensor::zeros({2, 1, 3}), Tensor::zeros({2, 1, 3}), Tensor::zeros({2, 1, 4}), cache,
                                 out);
        }) == "softmax_attention_step: changes its cache in place, which a tape cannot replay; use Tape::Pause");
}

TEST_CASE("a step may write into the memory of its inputs; a scale that is no finite number is refused") {
  manual_seed(4);
  const Tensor q = Tensor::normal({2, 3, 4}), k = Tensor::normal({2, 3, 4}), v = Tensor::normal({2, 3, 4});
  const auto second_step = [&](int which) {
    Tensor in[3] = {q.clone(), k.clone(), v.clone()}, out, first;
    KeyValueCache cache;
    softmax_attention_step(q, v, k, cache, first);
    if (which < 3) out = in[which];
    softmax_attention_step(in[0], in[1], in[2], cache, out);
    if (which < 3) CHECK(out.to_vector<float>() == in[which].to_vector<float>());
    return out.to_vector<float>();
  };
  for (int which : {0, 1, 2}) CHECK(second_step(which) == second_step(3));

  for (const double scale : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const Tensor x = Tensor::zeros({1, 2, 1, 3}), one = Tensor::zeros({1, 1, 3});
    KeyValueCache cache;
    Tensor out;
    const auto refused = doctest::Contains("given, a finite one wanted");
    CHECK_THROWS_WITH_AS(softmax_attention(x, x, x, {.scale = scale}), refused, Error);
    CHECK_THROWS_WITH_AS(softmax_attention_qkv(Tensor::zeros({1, 2, 3, 1, 3}), {.scale = scale}), refused, Error);
    CHECK_THROWS_WITH_AS(softmax_attention_step(one, one, one, cache, out, {.scale = scale}), refused, Error);
    CHECK(cache.length == 0);
  }
}
