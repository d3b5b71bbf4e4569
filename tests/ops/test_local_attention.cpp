#include "linnet/ops/local_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "support/attention.h"
#include "support/gradients.h"
#include "support/levels.h"
#include "support/modules.h"

using namespace linnet;
using test::time_step;

namespace {

/// The band as a pair mask, u8 (time, time).
Tensor band(int64_t time, int64_t window, bool causal) {
  std::vector<uint8_t> pairs;
  for (int64_t i = 0; i < time; ++i)
    for (int64_t j = 0; j < time; ++j) pairs.push_back(i - j <= window && j - i <= (causal ? 0 : window));
  return Tensor::from(pairs, {time, time});
}

Tensor quadratic(const Tensor& q, const Tensor& k, const Tensor& v, const LocalAttentionOptions& options) {
  ReferenceMasks masks;
  if (options.keys) masks.keys = options.keys->steps("test", "key", k.size(0), k.size(1), q.device());
  if (options.queries) masks.queries = options.queries->steps("test", "query", q.size(0), q.size(1), q.device());
  masks.pairs = band(q.size(1), options.window, options.causal);
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

template <class Attention>
Run run(const Tensor& q, const Tensor& k, const Tensor& v, Attention attention) {
  Tape tape;
  Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  Variable out = attention(ql, kl, vl);
  tape.backward(out, test::normal(out.shape(), 77, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const LocalAttentionOptions& options) {
  return run(q, k, v, [&](const auto& a, const auto& b, const auto& c) { return local_attention(a, b, c, options); });
}

void check_equal(const Run& a, const Run& b) {
  CHECK(bit_equal(a.out, b.out));
  CHECK(bit_equal(a.dq, b.dq));
  CHECK(bit_equal(a.dk, b.dk));
  CHECK(bit_equal(a.dv, b.dv));
}

void check_near(const Run& a, const Run& b, double tolerance) {
  CHECK(deviation(a.out, b.out) < tolerance);
  CHECK(deviation(a.dq, b.dq) < tolerance);
  CHECK(deviation(a.dk, b.dk) < tolerance);
  CHECK(deviation(a.dv, b.dv) < tolerance);
}

/// 0 or 1, about a third of them 0.
Tensor random_mask(const Shape& shape, uint64_t seed) {
  std::vector<uint8_t> mask;
  for (float x : test::normal(shape, seed).to_vector<float>()) mask.push_back(x > -0.43f);
  return Tensor::from(mask, shape);
}

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

/// x (1, time, ...) with steps begin .. end-1 set to `value`.
Tensor changed(const Tensor& x, int64_t begin, int64_t end, double value) {
  Tensor y = x.clone();
  y.reshape({x.size(1), x.numel() / x.size(1)}).slice(begin, end).fill(value);
  return y;
}

Tensor steps(const Tensor& x, int64_t begin, int64_t end) { return compute::slice(x, 1, begin, end); }

}  // namespace

TEST_CASE("local attention agrees with its definition for every window and mask") {
  for_each_level([] {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const int64_t time : {1, 7, 65, 150})
        for (const int64_t window : {0, 1, 5, 64, 70, 149})
          for (const bool causal : {false, true})
            for (int masked = 0; masked < 4; ++masked) {
              CAPTURE(time);
              CAPTURE(window);
              const KeyMask keys = KeyMask::array(random_mask({2, time}, 4));
              const QueryMask queries = QueryMask::array(random_mask({2, time}, 5));
              const LocalAttentionOptions options{.window = window,
                                                  .causal = causal,
                                                  .scale = masked == 3 ? std::optional<double>(0.7) : std::nullopt,
                                                  .keys = masked & 1 ? &keys : nullptr,
                                                  .queries = masked & 2 ? &queries : nullptr};
              const Tensor q = draw({2, time, 1, 5}, 1, dtype), k = draw({2, time, 1, 5}, 2, dtype),
                           v = draw({2, time, 1, 3}, 3, dtype);
              CHECK(deviation(local_attention(q, k, v, options).value(), quadratic(q, k, v, options)) <
                    (dtype == Dtype::f32 ? 1e-5 : 1e-12));
            }
  });
}

TEST_CASE("gradients of local attention") {
  for_each_level([] {
    const auto check = [](const LocalAttentionOptions& options, const Shape& qk, const Shape& v) {
      check_gradients("local_attention", [&](const auto& x) { return local_attention(x[0], x[1], x[2], options); },
                      {draw(qk, 1), draw(qk, 2), draw(v, 3)});
    };
    const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 0, 0, 0, 0, 0}, {2, 5}));
    const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 0, 1, 1, 1}, {2, 5}));
    for (const bool causal : {true, false}) {
      for (const int64_t window : {0, 1, 2})
        for (int masked = 0; masked < 4; ++masked)
          check({.window = window,
                 .causal = causal,
                 .keys = masked & 1 ? &keys : nullptr,
                 .queries = masked & 2 ? &queries : nullptr},
                {2, 5, 1, 2}, {2, 5, 1, 3});
      check({.window = 67, .causal = causal}, {1, 150, 1, 3}, {1, 150, 1, 2});
      check({.window = 1, .causal = causal}, {1, 0, 2, 3}, {1, 0, 2, 3});
      check({.window = 1, .causal = causal}, {0, 3, 2, 3}, {0, 3, 2, 3});
      check({.window = 1, .causal = causal}, {1, 3, 2, 0}, {1, 3, 2, 2});
      check_gradients("local_attention_qkv",
                      [&](const auto& x) { return local_attention_qkv(x[0], {.window = 1, .causal = causal}); },
                      {draw({2, 4, 3, 2, 2}, 1)});
    }
  });
}

TEST_CASE("local attention with a window over all is softmax attention; with a smaller one that of its pairs") {
  for_each_level([] {
    const int64_t time = 150;
    const Tensor q = draw({2, time, 2, 5}, 1), k = draw({2, time, 2, 5}, 2), v = draw({2, time, 2, 3}, 3);
    for (const bool causal : {false, true}) {
      const auto softmax = [&](const PairMask* pairs) {
        return run(q, k, v, [&](const auto& a, const auto& b, const auto& c) {
          return softmax_attention(a, b, c, {.causal = causal, .pairs = pairs});
        });
      };
      const Run whole = softmax(nullptr);
      for (const int64_t window : {time - 1, time + 9, std::numeric_limits<int64_t>::max()})
        check_equal(run(q, k, v, {.window = window, .causal = causal}), whole);
      for (const int64_t window : {0, 3, 64, 100}) {
        const PairMask pairs(band(time, window, causal));
        check_near(run(q, k, v, {.window = window, .causal = causal}), softmax(&pairs), 1e-12);
      }
    }
  });
}

TEST_CASE("local attention: a padded sample gives what it gives alone, and NaN behind a mask stays there") {
  for_each_level([] {
    const int64_t time = 90;
    const std::vector<int32_t> lengths{90, 70, 1, 0};
    const KeyMask keys = KeyMask::lengths(lengths);
    const QueryMask queries = QueryMask::lengths(lengths);
    Tensor q = draw({4, time, 2, 4}, 1), k = draw({4, time, 2, 4}, 2), v = draw({4, time, 2, 4}, 3);
    for (Tensor* x : {&q, &k, &v})
      for (int64_t b = 0; b < 4; ++b)
        x->reshape({4 * time, 8}).slice(b * time + lengths[static_cast<size_t>(b)], (b + 1) * time).fill(NAN);
    for (const bool causal : {false, true}) {
      const Run all = run(q, k, v, {.window = 6, .causal = causal, .keys = &keys, .queries = &queries});
      for (int64_t b = 0; b < 4; ++b) {
        const int64_t length = lengths[static_cast<size_t>(b)];
        const auto alone = [&](const Tensor& x) { return test::sample(x, b, length); };
        CHECK(deviation(alone(all.out),
                        local_attention(alone(q), alone(k), alone(v), {.window = 6, .causal = causal}).value()) <
              1e-12);
        for (const Tensor& x : {all.out, all.dq, all.dk, all.dv})
          CHECK(compute::sum_of_squares(steps(x.slice(b, b + 1), length, time)) == 0);
      }
    }
  });
}

TEST_CASE("local attention: a token changes outputs within the window, the later ones where causal, and no others") {
  const Tensor q = draw({1, 150, 2, 8}, 1, Dtype::f32), k = draw(q.shape(), 2, Dtype::f32),
               v = draw(q.shape(), 3, Dtype::f32);
  for (const bool causal : {false, true})
    for (const double value : {2.0, double{NAN}}) {
      const LocalAttentionOptions options{.window = 20, .causal = causal};
      const Tensor before = local_attention(q, k, v, options).value(),
                   after =
                       local_attention(q, changed(k, 100, 101, value), changed(v, 100, 101, value), options).value();
      const int64_t first = causal ? 100 : 80;
      // A tile that holds NaN takes another way to the same sums.
      CHECK(deviation(steps(after, 0, first), steps(before, 0, first)) < (std::isnan(value) ? 1e-6 : 1e-300));
      CHECK(deviation(steps(after, 121, 150), steps(before, 121, 150)) < (std::isnan(value) ? 1e-6 : 1e-300));
      for (int64_t t = first; t <= 120; ++t)
        CHECK(!(deviation(steps(after, t, t + 1), steps(before, t, t + 1)) < 1e-6));
    }
}

TEST_CASE("local attention keeps no scores: bytes grow with time alone") {
  const auto peak = [](int64_t time) {
    const Tensor x = Tensor::normal({1, time, 2, 16});
    Tape tape;
    const Variable q = Variable::leaf(x), out = local_attention(q, q, q, {.window = 100, .causal = true});
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

TEST_CASE("local attention: steps over a ring equal the whole run; a copied ring is its own") {
  for_each_level([] {
    const int64_t time = 70;
    const Tensor qkv = draw({2, time, 3, 2, 5}, 1, Dtype::f32);
    for (const int64_t window : {0, 1, 6, 19, 100}) {
      CAPTURE(window);
      const LocalAttentionOptions options{.window = window, .causal = true};
      const Tensor whole = local_attention_qkv(qkv, options).value();
      LocalCache cache, copy;
      Tensor out, copied;
      for (int64_t t = 0; t < time; ++t) {
        if (t == 33) {
          copy = cache;
          local_attention_step_qkv(Tensor::full({2, 3, 2, 5}, 5), copy, copied, options);
        }
        local_attention_step_qkv(time_step(qkv, t), cache, out, options);
        CHECK(deviation(out, time_step(whole, t)) < 1e-5);
      }
      CHECK(cache.ring.length == std::min(window + 1, time));
      CHECK(cache.ring.k.size(1) <= window + 1);
      CHECK(copy.ring.length == std::min<int64_t>(window + 1, 34));
    }
    const Tensor one = draw({2, 2, 5}, 4), v = draw({2, 2, 3}, 5);
    const QueryMask none = QueryMask::lengths({0, 0});
    LocalCache fresh;
    Tensor first;
    local_attention_step(one, one, v, fresh, first, {.window = 2});
    CHECK(deviation(first, v) < 1e-12);
    local_attention_step(one, one, v, fresh, first, {.window = 2, .queries = &none});
    CHECK(compute::sum_of_squares(first) == 0);
  });
}

TEST_CASE("errors of local attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), one = Tensor::zeros({2, 1, 3});
  CHECK(message_of([&] { local_attention(q, k, k, {.window = 1}); }) ==
        "local_attention: needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] { local_attention(q, q, q, {.causal = true}); }) ==
        "local_attention: window -1 given, 0 or more wanted");
  CHECK(message_of([&] { local_attention(q, one, q, {.window = 1}); }) ==
        "local_attention: k (2, 1, 3) is not (batch, time, heads, dim)");
  CHECK(message_of([&] { local_attention_qkv(q, {.window = 1}); }) ==
        "local_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  CHECK(message_of([&] { local_attention(q, q, q, {.window = 1, .scale = std::nan("")}); }) ==
        "local_attention: scale nan given, a finite one wanted");
  LocalCache cache;
  Tensor out;
  for (int i = 0; i < 4; ++i) local_attention_step(one, one, one, cache, out, {.window = 2});
  CHECK(message_of([&] { local_attention_step(one, one, one, cache, out, {.window = 5}); }) ==
        "local_attention_step: a cache of 3 steps that begins at 1 is not one of window 5");
  CHECK(message_of([&] { local_attention_step(one, one, one, cache, out, {.window = 1}); }) ==
        "local_attention_step: a cache of 3 steps that begins at 1 is not one of window 1");
  const KeyMask keys = KeyMask::lengths({1, 1});
  CHECK(message_of([&] { local_attention_step(one, one, one, cache, out, {.window = 2, .keys = &keys}); }) ==
        "local_attention_step: takes a query mask, not a key mask");
  Tape tape;
  CHECK(message_of([&] { local_attention_step(one, one, one, cache, out, {.window = 2}); }) ==
        "local_attention_step: changes its cache in place, which a tape cannot replay; use Tape::Pause");
}
