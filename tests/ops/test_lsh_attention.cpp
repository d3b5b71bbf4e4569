#include "linnet/ops/lsh_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "linnet/ops/softmax_attention.h"
#include "support/attention.h"
#include "support/gradients.h"
#include "support/levels.h"
#include "support/lsh_attention.h"
#include "support/modules.h"

using namespace linnet;
using test::lsh_by_definition;
using test::random_hashes;

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

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const LshAttentionOptions& options) {
  return run(q, k, v, [&](const auto& a, const auto& b, const auto& c) { return lsh_attention(a, b, c, options); });
}

void check_near(const Run& a, const Run& b, double tolerance) {
  CHECK(deviation(a.out, b.out) < tolerance);
  CHECK(deviation(a.dq, b.dq) < tolerance);
  CHECK(deviation(a.dk, b.dk) < tolerance);
  CHECK(deviation(a.dv, b.dv) < tolerance);
}

bool all_zero(const Tensor& x) { return compute::sum_of_squares(x) == 0; }

/// 0 or 1, about a third of them 0.
Tensor random_mask(const Shape& shape, uint64_t seed) {
  std::vector<uint8_t> mask;
  for (float x : test::normal(shape, seed).to_vector<float>()) mask.push_back(x > -0.43f);
  return Tensor::from(mask, shape);
}

/// The rows of x divided by their norms, and 0 where that is 0.
Tensor unit_rows(const Tensor& x) {
  const int64_t dim = x.size(3);
  std::vector<double> values = x.to_vector<double>();
  for (size_t row = 0; row < values.size(); row += static_cast<size_t>(dim)) {
    const auto first = values.begin() + static_cast<int64_t>(row);
    const double norm = std::sqrt(std::inner_product(first, first + dim, first, 0.0));
    for (int64_t d = 0; d < dim; ++d) first[d] = norm > 0 ? first[d] / norm : 0;
  }
  return Tensor::from(values, x.shape());
}

/// Every form: both ways to combine rounds, with and without the buckets, the own step, causality.
template <class F>
void for_each_form(const F& f) {
  for (int form = 0; form < 16; ++form) {
    CAPTURE(form);
    f(LshAttentionOptions{.chunk = 4,
                          .causal = (form & 1) != 0,
                          .self = (form & 2) != 0,
                          .own_bucket = (form & 4) != 0,
                          .combine = form & 8 ? LshRounds::mean : LshRounds::joint});
  }
}

}  // namespace

TEST_CASE("LSH attention agrees with its definition") {
  for_each_form([](LshAttentionOptions options) {
    for (const int64_t time : {1, 2, 5, 8, 95})
      for (const Dtype dtype : {Dtype::f32, Dtype::f64})
        for (const int64_t chunk : {1, 4, 70}) {
          const int64_t rounds = dtype == Dtype::f32 ? 1 : 3;
          CAPTURE(time);
          CAPTURE(rounds);
          CAPTURE(chunk);
          const KeyMask keys = KeyMask::array(random_mask({2, time}, 4));
          const QueryMask queries = QueryMask::array(random_mask({2, time}, 5));
          const Tensor hashes = random_hashes({2, time, 2, rounds}, 6);
          options.rounds = rounds;
          options.chunk = chunk;
          options.hashes = &hashes;
          options.keys = rounds == 3 ? &keys : nullptr;
          options.queries = rounds == 3 ? &queries : nullptr;
          options.scale = chunk == 4 ? std::optional<double>(0.7) : std::nullopt;
          const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
          const Tensor q = draw({2, time, 2, 5}, 1, dtype), k = draw({2, time, 2, 5}, 2, dtype),
                       v = draw({2, time, 2, 3}, 3, dtype);
          CHECK(deviation(lsh_attention(q, k, v, options).value(), lsh_by_definition(q, k, v, options)) < tolerance);
          CHECK(deviation(lsh_attention_shared(q, v, options).value(),
                          lsh_by_definition(q, unit_rows(q.to(Dtype::f64)), v, options)) < tolerance);
        }
  });
}

TEST_CASE("gradients of LSH attention") {
  const KeyMask keys = KeyMask::array(Tensor::from<uint8_t>({0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {2, 7}));
  const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}, {2, 7}));
  for_each_form([&](LshAttentionOptions options) {
    for (const bool masked : {false, true}) {
      const Tensor hashes = random_hashes({2, 7, 1, 2}, 3);
      options.chunk = 2;
      options.rounds = 2;
      options.hashes = &hashes;
      options.keys = masked ? &keys : nullptr;
      options.queries = masked ? &queries : nullptr;
      check_gradients("lsh_attention", [&](const auto& x) { return lsh_attention(x[0], x[1], x[2], options); },
                      {draw({2, 7, 1, 2}, 1), draw({2, 7, 1, 2}, 2), draw({2, 7, 1, 3}, 3)});
      check_gradients("lsh_attention_qkv", [&](const auto& x) { return lsh_attention_qkv(x[0], options); },
                      {draw({2, 7, 3, 1, 2}, 1)});
      check_gradients("lsh_attention_shared", [&](const auto& x) { return lsh_attention_shared(x[0], x[1], options); },
                      {draw({2, 7, 1, 2}, 1), draw({2, 7, 1, 3}, 3)});
    }
  });
  for (const auto& [qk, v] : {std::pair<Shape, Shape>{{1, 0, 2, 3}, {1, 0, 2, 3}},
                              {{0, 3, 2, 3}, {0, 3, 2, 3}},
                              {{1, 3, 2, 0}, {1, 3, 2, 2}},
                              {{1, 3, 2, 2}, {1, 3, 2, 0}},
                              {{1, 150, 1, 3}, {1, 150, 1, 2}}}) {
    const Tensor hashes = random_hashes({qk[0], qk[1], qk[2], 2}, 4);
    check_gradients(
        "lsh_attention",
        [&](const auto& x) { return lsh_attention(x[0], x[1], x[2], {.chunk = 66, .rounds = 2, .hashes = &hashes}); },
        {draw(qk, 1), draw(qk, 2), draw(v, 3)});
  }
}

TEST_CASE("LSH attention with one bucket, one chunk and the own step is softmax attention, whatever the rounds") {
  for_each_level([] {
    const int64_t time = 70;
    const Tensor q = draw({2, time, 2, 5}, 1), k = draw(q.shape(), 2), v = draw({2, time, 2, 3}, 3);
    for (const bool causal : {false, true})
      for (const int64_t rounds : {1, 3})
        for (const LshRounds combine : {LshRounds::joint, LshRounds::mean}) {
          const Tensor hashes = Tensor::zeros({2, time, 2, rounds}, Dtype::i32);
          const Run exact = run(q, k, v, [&](const auto& a, const auto& b, const auto& c) {
            return softmax_attention(a, b, c, {.causal = causal});
          });
          for (const int64_t chunk : {time, std::numeric_limits<int64_t>::max()})
            check_near(run(q, k, v,
                           {.chunk = chunk,
                            .rounds = rounds,
                            .causal = causal,
                            .self = true,
                            .combine = combine,
                            .hashes = &hashes}),
                       exact, 1e-12);
        }
  });
}

TEST_CASE("LSH attention: a padded sample gives what it gives alone, and NaN behind a mask stays there") {
  const int64_t time = 90;
  const std::vector<int32_t> lengths{90, 70, 1, 0};
  const KeyMask keys = KeyMask::lengths(lengths);
  const QueryMask queries = QueryMask::lengths(lengths);
  Tensor q = draw({4, time, 2, 4}, 1), k = draw({4, time, 2, 4}, 2), v = draw({4, time, 2, 4}, 3);
  for (Tensor* x : {&q, &k, &v})
    for (int64_t b = 0; b < 4; ++b)
      x->reshape({4 * time, 8}).slice(b * time + lengths[static_cast<size_t>(b)], (b + 1) * time).fill(NAN);
  for_each_form([&](LshAttentionOptions options) {
    options.buckets = 8;
    options.chunk = 16;
    options.rounds = 2;
    for (const bool shared : {false, true}) {
      const auto attend = [&](const auto& a, const auto& b, const auto& c, const KeyMask* km, const QueryMask* qm) {
        Generator generator{11, 0, 0};
        LshAttentionOptions these = options;
        these.keys = km;
        these.queries = qm;
        these.generator = &generator;
        return shared ? lsh_attention_shared(a, c, these) : lsh_attention(a, b, c, these);
      };
      Tape tape;
      const Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
      const Variable out = attend(ql, kl, vl, &keys, &queries);
      tape.backward(out, test::normal(out.shape(), 77, out.dtype()));
      for (int64_t b = 0; b < 4; ++b) {
        const int64_t length = lengths[static_cast<size_t>(b)];
        const auto alone = [&](const Tensor& x) { return test::sample(x, b, length); };
        CHECK(deviation(alone(out.value()), attend(alone(q), alone(k), alone(v), nullptr, nullptr).value()) < 1e-12);
        std::vector<Tensor> all{out.value(), ql.grad(), vl.grad()};
        if (!shared) all.push_back(kl.grad());
        for (const Tensor& x : all) {
          CHECK(compute::all_finite(x));
          CHECK(all_zero(compute::slice(x.slice(b, b + 1), 1, length, time)));
        }
      }
    }
  });
}

TEST_CASE("LSH attention: a query with no key but its own gives its value; with none at all 0") {
  const Tensor q = draw({1, 4, 1, 2}, 1), v = draw({1, 4, 1, 3}, 2);
  const Tensor hashes = Tensor::from<int32_t>({5, -3, 7, 0, 2, 2, 9, 1}, {1, 4, 1, 2});
  for (const LshRounds combine : {LshRounds::joint, LshRounds::mean}) {
    LshAttentionOptions options{.chunk = 4, .rounds = 2, .combine = combine, .hashes = &hashes};
    Run r = run(q, q, v, options);
    CHECK(deviation(r.out, v) < 1e-15);
    CHECK(deviation(r.dv, test::normal(v.shape(), 77, v.dtype())) < 1e-15);
    CHECK(all_zero(r.dq));
    CHECK(all_zero(r.dk));
    const KeyMask none = KeyMask::lengths({0});
    options.keys = &none;
    r = run(q, q, v, options);
    for (const Tensor& x : {r.out, r.dq, r.dk, r.dv}) CHECK(all_zero(x));
  }
  // A row of zeros has no direction: its key is 0, and so is all that the gradient says of it.
  const Tensor zeros = Tensor::zeros({1, 4, 1, 2}, Dtype::f64), same = Tensor::zeros({1, 4, 1, 1}, Dtype::i32);
  const Run r = run(zeros, zeros, v, [&](const auto& a, const auto&, const auto& c) {
    return lsh_attention_shared(a, c, {.chunk = 4, .self = true, .hashes = &same});
  });
  CHECK(deviation(r.out, compute::broadcast_to(compute::scale(compute::sum_to(v, {1, 1, 1, 3}), 0.25), v.shape())) <
        1e-15);
  CHECK(all_zero(r.dq));
}

TEST_CASE("LSH attention: the weight on a later step is exactly 0 where causal") {
  const int64_t time = 40;
  const Tensor q = draw({1, time, 1, 4}, 1), k = draw(q.shape(), 2), v = draw(q.shape(), 3);
  const Tensor hashes = random_hashes({1, time, 1, 2}, 4);
  for (const LshRounds combine : {LshRounds::joint, LshRounds::mean})
    for (const int64_t i : {0, 13, 39}) {
      Tape tape;
      const Variable kl = Variable::leaf(k), vl = Variable::leaf(v);
      const Variable out = lsh_attention(
          q, kl, vl,
          {.chunk = 8, .rounds = 2, .causal = true, .own_bucket = false, .combine = combine, .hashes = &hashes});
      Tensor seed = zeros_like(out.value());
      seed.reshape({time, 4}).slice(i, i + 1).fill(1);
      tape.backward(out, seed);
      for (const Tensor& x : {kl.grad(), vl.grad()}) CHECK(all_zero(compute::slice(x, 1, i + 1, time)));
      CHECK(!all_zero(vl.grad()));
    }
}

TEST_CASE("lsh_hashes: argmax of [xR; -xR], the same for any batch; opposite rows fall into opposite buckets") {
  const Tensor x = draw({2, 5, 3, 4}, 1, Dtype::f32);
  Generator generator{7, 0, 0}, same = generator, once = generator;
  const Tensor hashes = lsh_hashes(x, 6, 2, generator);
  CHECK(hashes.shape() == Shape{2, 5, 3, 2});
  const Tensor rotations = same.normal({4, 6}, 0, 1).reshape({4, 6});
  CHECK(generator.offset == same.offset);
  const std::vector<float> projected = compute::matmul(x.reshape({30, 4}), rotations).to_vector<float>();
  for (size_t row = 0; row < 30; ++row)
    for (size_t r = 0; r < 2; ++r) {
      int32_t best = 0;
      const auto value = [&](int32_t c) {
        const float p = projected[row * 6 + r * 3 + static_cast<size_t>(c % 3)];
        return c < 3 ? p : -p;
      };
      for (int32_t c = 1; c < 6; ++c)
        if (value(c) > value(best)) best = c;
      CHECK(hashes.data<int32_t>()[row * 2 + r] == best);
    }
  const std::vector<int32_t> opposite = lsh_hashes(compute::scale(x, -2), 6, 2, once).to_vector<int32_t>();
  for (size_t i = 0; i < opposite.size(); ++i) CHECK(opposite[i] == (hashes.data<int32_t>()[i] + 3) % 6);
}

TEST_CASE("LSH attention repeats itself, draws anew from its generator, and keeps no scores") {
  const Tensor x = draw({1, 1024, 2, 16}, 1, Dtype::f32);
  Generator generator{1, 0, 0}, same = generator;
  const auto once = [&](Generator& from) {
    return lsh_attention(x, x, x, {.buckets = 16, .chunk = 32, .rounds = 2, .generator = &from}).value();
  };
  const Tensor first = once(generator);
  CHECK(bit_equal(once(same), first));
  Generator third{1, 0, 0};
  const Tensor rotations = third.normal({16, 2, 8}, 0, 1);
  const LshAttentionOptions given{.buckets = 16, .chunk = 32, .rounds = 2, .rotations = &rotations};
  CHECK(bit_equal(lsh_attention(x, x, x, given).value(), first));
  CHECK(!bit_equal(once(generator), first));
  const int before = num_threads();
  std::vector<Run> runs;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Generator again{1, 0, 0};
    runs.push_back(run(x, x, x, {.buckets = 16, .chunk = 32, .rounds = 2, .generator = &again}));
  }
  set_num_threads(before);
  CHECK(bit_equal(runs[0].out, first));
  check_near(runs[0], runs[1], 1e-300);
  const Variable q = Variable::leaf(x);
  Tape tape;
  lsh_attention(q, q, q, {.buckets = 16, .chunk = 32, .rounds = 2});
  CHECK(tape.bytes_kept() == 4 * 1024 * 2 * (16 + 16 + 1 + 2));  // q, o, log(sum exp), hashes
}

TEST_CASE("errors of LSH attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), one = Tensor::zeros({2, 1, 3});
  const LshAttentionOptions good{.buckets = 4, .chunk = 2};
  CHECK(message_of([&] { lsh_attention(q, k, k, good); }) ==
        "lsh_attention: needs as many queries as keys, but q has 3 and k has 5");
  CHECK(message_of([&] { lsh_attention(q, one, q, good); }) ==
        "lsh_attention: k (2, 1, 3) is not (batch, time, heads, dim)");
  CHECK(message_of([&] { lsh_attention_qkv(q, good); }) ==
        "lsh_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  CHECK(message_of([&] { lsh_attention_shared(q, k, good); }) ==
        "lsh_attention_shared: k (2, 3, 2, 4) and v (2, 5, 2, 4) differ in batch, time or heads");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4}); }) ==
        "lsh_attention: chunk 0 given, 1 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 3, .chunk = 2}); }) ==
        "lsh_attention: 3 buckets given, an even number of 2 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .rounds = 0}); }) ==
        "lsh_attention: 0 rounds given, 1 or more wanted");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .scale = std::nan("")}); }) ==
        "lsh_attention: scale nan given, a finite one wanted");
  const Tensor hashes = Tensor::zeros({2, 3, 2, 1}, Dtype::i32), floats = Tensor::zeros({2, 3, 2, 1});
  CHECK(message_of([&] { lsh_attention(q, q, q, {.chunk = 2, .rounds = 2, .hashes = &hashes}); }) ==
        "lsh_attention: hashes (2, 3, 2, 1) i32 are not i32 (batch, time, heads, rounds) = (2, 3, 2, 2)");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.chunk = 2, .hashes = &floats}); }) ==
        "lsh_attention: hashes (2, 3, 2, 1) f32 are not i32 (batch, time, heads, rounds) = (2, 3, 2, 1)");
  CHECK(message_of([&] { lsh_attention(q, q, q, {.buckets = 4, .chunk = 2, .rotations = &one}); }) ==
        "lsh_attention: rotations (2, 1, 3) f32 are not f32 (dim, rounds, buckets / 2) = (4, 1, 2)");
  Generator generator;
  CHECK(message_of([&] { lsh_hashes(one, 4, 1, generator); }) ==
        "lsh_hashes: x (2, 1, 3) is not (batch, time, heads, dim)");
}
