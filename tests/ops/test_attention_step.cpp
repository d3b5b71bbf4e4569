// The kernels of one step at every level, on sizes that leave remainders, against the parallel forms at the level
// plain.
#include <doctest/doctest.h>

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/softmax_attention.h"
#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;

namespace {

Tensor draw(const Shape& shape, Dtype dtype, uint64_t stream) {
  return Generator{11, stream, 0}.normal(shape, 0, 1, dtype);
}

/// Step t of (batch, time, heads, width).
Tensor at_time(const Tensor& x, int64_t t) {
  return compute::slice(x, 1, t, t + 1).reshape(Shape{x.size(0), x.size(2), x.size(3)});
}

struct Sizes {
  int64_t dim, value_dim, time;
};
constexpr Sizes kSizes[] = {{1, 1, 3}, {3, 5, 4}, {16, 17, 5}, {31, 33, 3}, {32, 32, 150}, {64, 48, 3}, {100, 129, 3}};

/// Calls f(dtype, tolerance) at every level.
template <class F>
void for_each_dtype(const F& f) {
  test::for_each_level([&](const char* level) {
    CAPTURE(level);
    f(Dtype::f32, 3e-5);
    f(Dtype::f64, 1e-11);
  });
}

template <class F>
auto at_level(Level wanted, const F& f) {
  const Level before = level();
  force_level(wanted);
  auto result = f();
  force_level(before);
  return result;
}

}  // namespace

TEST_CASE("attention step: linear, every feature map, equals the parallel form of the level plain") {
  for_each_dtype([](Dtype dtype, double tolerance) {
    for (const Sizes& n : kSizes) {
      for (const FeatureMap map : {FeatureMap::elu1, FeatureMap::relu, FeatureMap::identity}) {
        for (const bool normalise : {true, false}) {
          CAPTURE(n.dim);
          CAPTURE(n.value_dim);
          Tensor q = draw({2, n.time, 3, n.dim}, dtype, 1), k = draw({2, n.time, 3, n.dim}, dtype, 2);
          const Tensor v = draw({2, n.time, 3, n.value_dim}, dtype, 3);
          if (map == FeatureMap::identity) {  // which wants positive features
            q = compute::unary(UnaryOp::Elu1, q);
            k = compute::unary(UnaryOp::Elu1, k);
          }
          const LinearAttentionOptions options{.feature_map = map, .causal = true, .normalise = normalise, .eps = 0.01};
          const Tensor all = at_level(Level::plain, [&] { return linear_attention(q, k, v, options).value(); });
          LinearState state;
          Tensor out;
          for (int64_t t = 0; t < n.time; ++t) {
            linear_attention_step(at_time(q, t), at_time(k, t), at_time(v, t), state, out, options);
            CHECK(test::deviation(out, at_time(all, t)) < tolerance);
          }
        }
      }
    }
  });
}

TEST_CASE("attention step: softmax equals the parallel form of the level plain") {
  for_each_dtype([](Dtype dtype, double tolerance) {
    for (const Sizes& n : kSizes) {
      CAPTURE(n.dim);
      CAPTURE(n.value_dim);
      const Tensor q = draw({2, n.time, 3, n.dim}, dtype, 1), k = draw({2, n.time, 3, n.dim}, dtype, 2);
      const Tensor v = draw({2, n.time, 3, n.value_dim}, dtype, 3);
      const SoftmaxAttentionOptions options{.causal = true};
      const Tensor all = at_level(Level::plain, [&] { return softmax_attention(q, k, v, options).value(); });
      KeyValueCache cache;
      Tensor out;
      for (int64_t t = 0; t < n.time; ++t) {
        softmax_attention_step(at_time(q, t), at_time(k, t), at_time(v, t), cache, out, options);
        CHECK(test::deviation(out, at_time(all, t)) < tolerance);
      }
    }
  });
}

TEST_CASE("attention step: what a mask leaves out is not read; a masked query gives 0") {
  const double nan = std::nan("");
  for_each_dtype([&](Dtype dtype, double tolerance) {
    for (const int64_t width : {5, 32}) {
      const int64_t time = 70;
      Tensor x = draw({1, time, 1, width}, dtype, 1);
      const auto is_masked = [](int64_t t) { return t == 1 || t == 69; };
      LinearState state, clean_state;
      KeyValueCache cache, clean_cache;
      Tensor out, clean;
      std::vector<uint8_t> allowed;
      for (int64_t t = 0; t < time; ++t) {
        const Tensor q = at_time(x, t), junk = Tensor::full(q.shape(), nan, dtype);
        const Tensor& given = is_masked(t) ? junk : q;
        allowed.push_back(!is_masked(t));
        const KeyMask now = KeyMask::array(Tensor::from<uint8_t>({allowed.back()}, {1, 1}));
        const KeyMask past = KeyMask::array(Tensor::from(allowed, {1, t + 1}));
        linear_attention_step(q, given, given, state, out, {.keys = &now});
        if (!is_masked(t)) {
          linear_attention_step(q, q, q, clean_state, clean);
          CHECK(test::deviation(out, clean) < tolerance);
        }
        softmax_attention_step(q, given, given, cache, out, {.keys = &past});
        if (!is_masked(t)) {
          softmax_attention_step(q, q, q, clean_cache, clean);
          CHECK(test::deviation(out, clean) < tolerance);
        } else {
          CHECK(std::isfinite(out.to(Dtype::f64).to_vector<double>()[0]));
        }
      }
      const QueryMask none = QueryMask::array(Tensor::from<uint8_t>({0}, {1, 1}));
      const Tensor last = at_time(x, 0), junk = Tensor::full(last.shape(), nan, dtype);
      linear_attention_step(junk, last, last, state, out, {.queries = &none});
      CHECK(compute::sum_of_squares(out) == 0);
      softmax_attention_step(junk, last, last, clean_cache, out, {.queries = &none});
      CHECK(compute::sum_of_squares(out) == 0);
    }
  });
}

TEST_CASE("attention query: what a step reads, at every level, and the state stays as it was") {
  for_each_dtype([](Dtype dtype, double tolerance) {
    for (const Sizes& n : kSizes) {
      CAPTURE(n.dim);
      CAPTURE(n.value_dim);
      const Tensor q = draw({2, 1, 3, n.dim}, dtype, 1), k = draw({2, n.time, 3, n.dim}, dtype, 2);
      const Tensor v = draw({2, n.time, 3, n.value_dim}, dtype, 3);
      const LinearState state = linear_attention_with_state(k, k, v, {}).state;
      const Tensor s = state.s.value().clone(), z = state.z.value().clone();
      Tensor out;
      linear_attention_query(at_time(q, 0), state, out, {.eps = 0.01});
      const Tensor linear = at_level(Level::plain, [&] { return linear_attention(q, k, v, {.eps = 0.01}).value(); });
      CHECK(test::deviation(out, at_time(linear, 0)) < tolerance);
      CHECK(test::same_bits(state.s.value(), s));
      CHECK(test::same_bits(state.z.value(), z));

      const KeyMask keys = KeyMask::lengths({static_cast<int32_t>(n.time), 2});
      for (const KeyMask* mask : {static_cast<const KeyMask*>(nullptr), &keys}) {
        const SoftmaxAttentionOptions options{.keys = mask};
        softmax_attention_query(at_time(q, 0), {k, v, n.time}, out, options);
        const Tensor softmax = at_level(Level::plain, [&] { return softmax_attention(q, k, v, options).value(); });
        CHECK(test::deviation(out, at_time(softmax, 0)) < tolerance);
      }
    }
  });
}

TEST_CASE("attention query: errors and nothing to look at") {
  const Tensor q = Tensor::zeros({2, 3, 4}), k = Tensor::zeros({2, 5, 3, 4});
  const LinearState state(Tensor::zeros({2, 3, 4, 6}), Tensor::zeros({2, 3, 4}));
  Tensor out, other;
  linear_attention_query(q, state, out);
  CHECK(out.shape() == Shape{2, 3, 6});
  CHECK(compute::sum_of_squares(out) == 0);
  softmax_attention_query(q, {k, k, 0}, other);
  CHECK(compute::sum_of_squares(other) == 0);
  CHECK(test::message_of([&] {
          linear_attention_query(Tensor::zeros({2, 3, 5}), state, out);
        }) == "linear_attention_query: state s (2, 3, 4, 6) is not (batch, heads, D, M) = (2, 3, 5, 6)");
  CHECK(test::message_of([&] {
          softmax_attention_query(Tensor::zeros({2, 3, 5}), {k, k, 5}, other);
        }) ==
        "softmax_attention_query: cache k (2, 5, 3, 4) is not (batch, capacity, heads, dim) for a step (2, 3, 5)");
  CHECK_THROWS_WITH(softmax_attention_query(q, {k, k, 6}, other), doctest::Contains("has length 6 but room for 5"));
  CHECK_THROWS_WITH(linear_attention_query(q, LinearState(), out), doctest::Contains("linear_attention_query: "));
  CHECK_THROWS_WITH(softmax_attention_query(q, {}, other), doctest::Contains("softmax_attention_query: "));
  const KeyMask keys = KeyMask::lengths({1, 1});
  CHECK_THROWS_WITH(linear_attention_query(q, state, out, {.keys = &keys}), doctest::Contains("not a key mask"));
  CHECK_THROWS_AS(linear_attention_query(q, state, other), Error);  // out of another shape
  Tape tape;
  CHECK_THROWS_WITH(linear_attention_query(q, state, out), doctest::Contains("use linear_attention while a tape"));
  CHECK_THROWS_WITH(softmax_attention_query(q, {k, k, 5}, other), doctest::Contains("use softmax_attention while"));
}
