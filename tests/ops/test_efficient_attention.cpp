#include "linnet/ops/efficient_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/ops/shape_ops.h"
#include "support/attention.h"
#include "support/gradients.h"
#include "support/levels.h"
#include "support/modules.h"

using namespace linnet;

namespace {

/// softmax over the features of every query, as f64; over the allowed positions of every feature of the keys.
Tensor reference(const Tensor& q_any, const Tensor& k_any, const Tensor& v_any,
                 const EfficientAttentionOptions& options) {
  const auto here = [](const Tensor& x) { return x.to(Device::cpu).to(Dtype::f64); };
  const Tensor q = here(q_any), k = here(k_any), v = here(v_any);
  const int64_t batch = q.size(0), queries = q.size(1), keys = k.size(1), heads = q.size(2), dim = q.size(3),
                width = v.size(3);
  const auto at = [&](const Tensor& x, int64_t b, int64_t t, int64_t h, int64_t d) {
    return x.data<double>()[((b * x.size(1) + t) * heads + h) * x.size(3) + d];
  };
  const auto steps = [&](const auto* mask, int64_t time) {
    return mask ? mask->steps("test", "test", batch, time, q_any.device()).to(Device::cpu) : Tensor();
  };
  const Tensor key_steps = steps(options.keys, keys), query_steps = steps(options.queries, queries);
  const auto allows = [](const Tensor& mask, int64_t b, int64_t t) {
    return !mask.defined() || mask.data<uint8_t>()[b * mask.size(1) + t];
  };
  Tensor out = Tensor::zeros({batch, queries, heads, width}, Dtype::f64, Device::cpu);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t d = 0; d < dim; ++d) {
        std::vector<double> context(static_cast<size_t>(width));
        double total = 0;
        for (int64_t j = 0; j < keys; ++j) {
          if (!allows(key_steps, b, j)) continue;
          total += std::exp(at(k, b, j, h, d));
          for (int64_t m = 0; m < width; ++m)
            context[static_cast<size_t>(m)] += std::exp(at(k, b, j, h, d)) * at(v, b, j, h, m);
        }
        for (int64_t i = 0; i < queries; ++i) {
          if (total == 0 || !allows(query_steps, b, i)) continue;
          double sum = 0;
          for (int64_t e = 0; e < dim; ++e) sum += std::exp(at(q, b, i, h, e));
          for (int64_t m = 0; m < width; ++m)
            out.mutable_data<double>()[((b * queries + i) * heads + h) * width + m] +=
                std::exp(at(q, b, i, h, d)) / sum * context[static_cast<size_t>(m)] / total;
        }
      }
  return out;
}

struct Run {
  Tensor out, dq, dk, dv;
};

Run run(const Tensor& q, const Tensor& k, const Tensor& v, const EfficientAttentionOptions& options) {
  Tape tape;
  Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  Variable out = efficient_attention(ql, kl, vl, options);
  tape.backward(out, test::normal(out.shape(), 77, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

Tensor draw(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f64) { return test::normal(shape, seed, dtype); }

}  // namespace

TEST_CASE("efficient attention agrees with its definition for every mask") {
  for_each_level([] {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{1, 1}, {7, 7}, {5, 67}, {67, 5}})
        for (int masked = 0; masked < 4; ++masked) {
          const KeyMask key_mask = KeyMask::lengths({static_cast<int32_t>(keys), static_cast<int32_t>(keys / 2)});
          const QueryMask query_mask = QueryMask::lengths({1, static_cast<int32_t>(queries)});
          const EfficientAttentionOptions options{.keys = masked & 1 ? &key_mask : nullptr,
                                                  .queries = masked & 2 ? &query_mask : nullptr};
          const Tensor q = draw({2, queries, 2, 5}, 1, dtype), k = draw({2, keys, 2, 5}, 2, dtype),
                       v = draw({2, keys, 2, 3}, 3, dtype);
          CHECK(deviation(efficient_attention(q, k, v, options).value(), reference(q, k, v, options)) <
                (dtype == Dtype::f32 ? 1e-5 : 1e-12));
        }
  });
}

TEST_CASE("gradients of efficient attention") {
  const KeyMask keys = KeyMask::lengths({2, 0});
  const QueryMask queries = QueryMask::array(Tensor::from<uint8_t>({1, 0, 1, 1, 1, 1}, {2, 3}));
  const auto check = [](const EfficientAttentionOptions& options, const Shape& q, const Shape& k, const Shape& v) {
    check_gradients("softmax", [&](const auto& x) { return efficient_attention(x[0], x[1], x[2], options); },
                    {draw(q, 1), draw(k, 2), draw(v, 3)});
  };
  check({}, {2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 3});
  check({.keys = &keys, .queries = &queries}, {2, 3, 2, 2}, {2, 4, 2, 2}, {2, 4, 2, 3});
  check({}, {1, 65, 1, 5}, {1, 70, 1, 5}, {1, 70, 1, 3});
  check({}, {1, 3, 1, 2}, {1, 0, 1, 2}, {1, 0, 1, 2});
  check({}, {0, 3, 1, 2}, {0, 3, 1, 2}, {0, 3, 1, 2});
  check({}, {1, 3, 1, 0}, {1, 3, 1, 0}, {1, 3, 1, 2});
  check_gradients("softmax", [](const auto& x) { return efficient_attention_qkv(x[0]); }, {draw({2, 3, 3, 2, 2}, 1)});
}

TEST_CASE("efficient attention: a padded sample gives what it gives alone, and NaN behind a mask stays there") {
  for_each_level([] {
    const int64_t time = 40;
    const std::vector<int32_t> lengths{40, 23, 1, 0};
    const KeyMask keys = KeyMask::lengths(lengths);
    const QueryMask queries = QueryMask::lengths(lengths);
    Tensor q = draw({4, time, 2, 4}, 1), k = draw({4, time, 2, 4}, 2), v = draw({4, time, 2, 4}, 3);
    for (Tensor* x : {&q, &k, &v})
      for (int64_t b = 0; b < 4; ++b)
        x->reshape({4 * time, 8}).slice(b * time + lengths[static_cast<size_t>(b)], (b + 1) * time).fill(NAN);
    const Run all = run(q, k, v, {.keys = &keys, .queries = &queries});
    for (int64_t b = 0; b < 4; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      const auto alone = [&](const Tensor& x) { return test::sample(x, b, length); };
      CHECK(deviation(alone(all.out), efficient_attention(alone(q), alone(k), alone(v)).value()) < 1e-12);
      for (const Tensor& x : {all.out, all.dq, all.dk, all.dv}) {
        CHECK(compute::sum_of_squares(compute::slice(x.slice(b, b + 1), 1, length, time)) == 0);
        CHECK(compute::all_finite(x));
      }
    }
  });
}

TEST_CASE("efficient attention: the fused projection is its parts; a constant value comes out as it is") {
  const Tensor qkv = draw({2, 9, 3, 2, 4}, 1);
  const auto part = [&](int64_t i) { return reshape(slice(qkv, 2, i, i + 1), {2, 9, 2, 4}); };
  CHECK(bit_equal(efficient_attention_qkv(qkv).value(), efficient_attention(part(0), part(1), part(2)).value()));
  const Tensor v = Tensor::full({2, 9, 2, 3}, 1.5, Dtype::f64);
  CHECK(deviation(efficient_attention(part(0), part(1), v).value(), v) < 1e-12);
  const Tensor large = compute::scale(qkv, 1e4);  // the softmax of either does not overflow
  CHECK(compute::all_finite(efficient_attention_qkv(large).value()));
}

TEST_CASE("efficient attention: sums of the keys answer queries one by one as the whole does") {
  const KeyMask keys = KeyMask::lengths({9, 4, 0});
  const Tensor q = draw({3, 5, 2, 4}, 1), k = draw({3, 9, 2, 4}, 2), v = draw({3, 9, 2, 3}, 3);
  for (const KeyMask* mask : {static_cast<const KeyMask*>(nullptr), &keys}) {
    const Tensor all = efficient_attention(q, k, v, {.keys = mask}).value();
    const LinearState state = efficient_attention_sums(k, v, {.keys = mask});
    for (int64_t t = 0; t < 5; ++t) {
      Tensor out;
      efficient_attention_query(test::time_step(q, t), state, out);
      CHECK(deviation(out, test::time_step(all, t)) < 1e-12);
    }
    for (const double z : state.z.value().slice(0, 2).to_vector<double>()) CHECK(z == doctest::Approx(1));
  }
}

TEST_CASE("efficient attention: a mask brings no infinity onto the tape") {
  const KeyMask keys = KeyMask::lengths({9, 0});
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    Tape tape({.check_finite = true});
    Variable qkv = Variable::leaf(draw({2, 9, 3, 2, 4}, 1, dtype));
    const Variable out = efficient_attention_qkv(qkv, {.keys = &keys});
    CHECK_NOTHROW(tape.backward(out, Tensor::full(out.shape(), 1, dtype)));
    CHECK(compute::sum_of_squares(qkv.grad().slice(0, 1)) > 0);
    CHECK(compute::sum_of_squares(qkv.grad().slice(1, 2)) == 0);
  }
}

TEST_CASE("errors of efficient attention") {
  const Tensor q = Tensor::zeros({2, 3, 2, 4}), k = Tensor::zeros({2, 5, 2, 4}), v = Tensor::zeros({2, 4, 2, 4});
  CHECK(message_of([&] { efficient_attention(q, k, v); }) ==
        "efficient_attention: k (2, 5, 2, 4) and v (2, 4, 2, 4) differ in batch, time or heads");
  CHECK(message_of([&] { efficient_attention(q, q, q, {.causal = true}); }) ==
        "efficient_attention: cannot be causal, since its softmax over positions sees all keys at once; "
        "linear_attention can");
  CHECK(message_of([&] { efficient_attention_qkv(q); }) ==
        "efficient_attention_qkv: qkv (2, 3, 2, 4) is not (batch, time, 3, heads, dim)");
  const KeyMask keys = KeyMask::lengths({1});
  CHECK(message_of([&] { efficient_attention(q, k, k, {.keys = &keys}); }) ==
        "efficient_attention: key mask has 1 lengths for a batch of 2");
  const QueryMask queries = QueryMask::lengths({1, 1});
  CHECK(message_of([&] { efficient_attention_sums(k, k, {.queries = &queries}); }) ==
        "efficient_attention_sums: takes a key mask, not a query mask: there are no queries");
}
