#include "linnet/ops/lsh_attention.h"

#include "linnet/core/threads.h"
#include "linnet/ops/softmax_attention.h"
#include "support/attention_run.h"
#include "support/levels.h"
#include "support/lsh_attention.h"

using namespace linnet;
using test::all_zero;
using test::AttentionRun;
using test::lsh_by_definition;
using test::random_hashes;
using test::run_attention;

namespace {

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

AttentionRun run(const Tensor& q, const Tensor& k, const Tensor& v, const LshAttentionOptions& options) {
  return run_attention(q, k, v,
                       [&](const auto& a, const auto& b, const auto& c) { return lsh_attention(a, b, c, options); });
}

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

}  // namespace

TEST_CASE("LSH attention agrees with its definition") {
  test::for_each_lsh_form([](LshAttentionOptions options) {
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

TEST_CASE("LSH attention with one bucket, one chunk and the own step is softmax attention, whatever the rounds") {
  for_each_level([] {
    const int64_t time = 70;
    const Tensor q = draw({2, time, 2, 5}, 1), k = draw(q.shape(), 2), v = draw({2, time, 2, 3}, 3);
    for (const bool causal : {false, true})
      for (const int64_t rounds : {1, 3})
        for (const LshRounds combine : {LshRounds::joint, LshRounds::mean}) {
          const Tensor hashes = Tensor::zeros({2, time, 2, rounds}, Dtype::i32);
          const AttentionRun exact = run_attention(q, k, v, [&](const auto& a, const auto& b, const auto& c) {
            return softmax_attention(a, b, c, {.causal = causal});
          });
          for (const int64_t chunk : {time, std::numeric_limits<int64_t>::max()})
            test::check_near(run(q, k, v,
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
  test::for_each_lsh_form([&](LshAttentionOptions options) {
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
        test::check_nothing_after({out.value(), ql.grad(), kl.grad(), vl.grad()}, b, length);
      }
    }
  });
}

TEST_CASE("LSH attention: a query with no key but its own gives its value; with none at all 0") {
  const Tensor q = draw({1, 4, 1, 2}, 1), v = draw({1, 4, 1, 3}, 2);
  const Tensor hashes = Tensor::from<int32_t>({5, -3, 7, 0, 2, 2, 9, 1}, {1, 4, 1, 2});
  for (const LshRounds combine : {LshRounds::joint, LshRounds::mean}) {
    LshAttentionOptions options{.chunk = 4, .rounds = 2, .combine = combine, .hashes = &hashes};
    AttentionRun r = run(q, q, v, options);
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
  const AttentionRun r = run_attention(zeros, zeros, v, [&](const auto& a, const auto&, const auto& c) {
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

TEST_CASE("LSH attention repeats itself, draws anew from its generator, and keeps no scores") {
  const Tensor x = draw({1, 1024, 2, 16}, 1, Dtype::f32);
  Generator generator{1, 0, 0}, same = generator;
  const auto once = [&](Generator& from) {
    return lsh_attention(x, x, x, {.buckets = 16, .chunk = 32, .rounds = 2, .generator = &from}).value();
  };
  const Tensor first = once(generator);
  CHECK(bit_equal(once(same), first));
  CHECK(!bit_equal(once(generator), first));
  const int before = num_threads();
  std::vector<AttentionRun> runs;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Generator again{1, 0, 0};
    runs.push_back(run(x, x, x, {.buckets = 16, .chunk = 32, .rounds = 2, .generator = &again}));
  }
  set_num_threads(before);
  CHECK(bit_equal(runs[0].out, first));
  test::check_near(runs[0], runs[1], 1e-300);
  const Variable q = Variable::leaf(x);
  Tape tape;
  lsh_attention(q, q, q, {.buckets = 16, .chunk = 32, .rounds = 2});
  CHECK(tape.bytes_kept() == 4 * 1024 * 2 * (16 + 16 + 1 + 2));  // q, o, log(sum exp), hashes
}
