// Linear attention on a GPU against the CPU, in one process: values, states and gradients.
#include <optional>

#include "linnet/autograd/tape.h"
#include "linnet/core/dispatch.h"
#include "linnet/core/random.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

struct Sizes {
  int64_t batch, queries, keys, heads, dim, value_dim;
};

Tensor draw(const Shape& shape, Dtype dtype) { return Tensor::normal(shape, 0, 1, dtype, Device::cpu); }

double tolerance(Dtype dtype) { return dtype == Dtype::f32 ? 1e-5 : 1e-12; }

/// f gives tensors, from these that it gets: the same on both devices.
template <class F>
void check_devices(const std::vector<Tensor>& inputs, const F& f) {
  std::vector<Tensor> inputs_there;
  for (const Tensor& x : inputs) inputs_there.push_back(x.to(Device::cuda));
  const std::vector<Tensor> here = f(inputs), there = f(inputs_there);
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) {
    CAPTURE(i);
    CHECK(there[i].device() == Device::cuda);
    CHECK(deviation(there[i], here[i]) < tolerance(here[i].dtype()));
  }
}

/// The options with masks of their own, on the device of x: every third key is left out, or the last queries.
struct Masked {
  LinearAttentionOptions options;
  std::optional<KeyMask> keys;
  std::optional<QueryMask> queries;

  Masked(const LinearAttentionOptions& plain, bool is_masked, int64_t time, const Tensor& x) : options(plain) {
    if (!is_masked) return;
    std::vector<uint8_t> steps(static_cast<size_t>(x.size(0) * time), 1);
    for (size_t i = 0; i < steps.size(); i += 3) steps[i] = 0;
    keys = KeyMask::array(Tensor::from(steps, {x.size(0), time}, x.device()));
    std::vector<int32_t> lengths(static_cast<size_t>(x.size(0)), static_cast<int32_t>(time));
    lengths.back() = static_cast<int32_t>(time * 2 / 3);
    queries = QueryMask::lengths(lengths);
    options.keys = &*keys;
    options.queries = &*queries;
  }
  Masked(const Masked&) = delete;
};

void compare(const Sizes& n, const LinearAttentionOptions& options, Dtype dtype, bool is_masked = false) {
  CAPTURE(n.queries);
  CAPTURE(n.keys);
  CAPTURE(n.dim);
  CAPTURE(n.value_dim);
  CAPTURE(options.causal);
  const Tensor g = draw({n.batch, n.queries, n.heads, n.value_dim}, dtype);
  check_devices({draw({n.batch, n.queries, n.heads, n.dim}, dtype), draw({n.batch, n.keys, n.heads, n.dim}, dtype),
                 draw({n.batch, n.keys, n.heads, n.value_dim}, dtype), g},
                [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
                  Tape tape;
                  const Variable q = Variable::leaf(x[0]), k = Variable::leaf(x[1]), v = Variable::leaf(x[2]);
                  const Masked masked(options, is_masked, n.keys, x[0]);
                  const Variable out = linear_attention(q, k, v, masked.options);
                  tape.backward(out, x[3]);
                  return {out.value(), q.grad(), k.grad(), v.grad()};
                });
}

void compare_with_state(const Sizes& n, const LinearAttentionOptions& options, Dtype dtype, bool is_masked = false) {
  CAPTURE(n.queries);
  const auto rows = [&](int64_t width) { return draw({n.batch, n.queries, n.heads, width}, dtype); };
  check_devices({rows(n.dim), rows(n.dim), rows(n.value_dim), rows(n.value_dim),
                 draw({n.batch, n.heads, n.dim, n.value_dim}, dtype),
                 Tensor::uniform({n.batch, n.heads, n.dim}, 0.5, 1, dtype, Device::cpu)},
                [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
                  Tape tape;
                  const Variable q = Variable::leaf(x[0]), k = Variable::leaf(x[1]), v = Variable::leaf(x[2]),
                                 s = Variable::leaf(x[4]), z = Variable::leaf(x[5]);
                  const Masked masked(options, is_masked, n.keys, x[0]);
                  const auto r = linear_attention_with_state(q, k, v, {s, z}, masked.options);
                  tape.backward({r.out, r.state.s, r.state.z}, {x[3], x[4], x[5]});
                  return {r.out.value(), r.state.s.value(), r.state.z.value(), q.grad(),
                          k.grad(),      v.grad(),          s.grad(),          z.grad()};
                });
}

}  // namespace

TEST_SUITE("linear attention, both devices" * doctest::skip(!cuda_available())) {
  TEST_CASE("lengths around chunks and segments") {
    manual_seed(1);
    for (const int64_t time : {1, 63, 64, 65, 127, 129, 300, 1025})
      for (const bool causal : {true, false})
        for (const Dtype dtype : {Dtype::f32, Dtype::f64}) compare({1, time, time, 1, 7, 5}, {.causal = causal}, dtype);
    compare({2, 33, 150, 2, 3, 4}, {}, Dtype::f32);
    compare({2, 150, 33, 2, 4, 3}, {}, Dtype::f32);
  }

  TEST_CASE("widths that fit no tile") {
    manual_seed(2);
    for (const auto& [dim, width] :
         {std::pair<int64_t, int64_t>{1, 1}, {3, 65}, {65, 3}, {64, 64}, {33, 129}, {129, 33}, {300, 40}})
      for (const bool causal : {true, false})
        for (const Dtype dtype : {Dtype::f32, Dtype::f64})
          compare({1, 70, 70, 2, dim, width}, {.causal = causal}, dtype);
    compare({1, 40, 40, 1, 257, 20}, {.causal = true}, Dtype::f64);
  }

  TEST_CASE("every option") {
    manual_seed(3);
    for (const FeatureMap map : {FeatureMap::elu1, FeatureMap::relu})
      for (const bool causal : {true, false})
        for (const bool normalise : {true, false})
          for (const bool is_masked : {false, true})
            for (const Dtype dtype : {Dtype::f32, Dtype::f64})
              compare({2, 140, 140, 2, 6, 5},
                      {.feature_map = map, .causal = causal, .normalise = normalise, .eps = normalise ? 0.5 : 0}, dtype,
                      is_masked);
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      compare({1, 70, 70, 1, 5, 6}, {.feature_map = FeatureMap::identity, .causal = true, .normalise = false}, dtype);
      for (const int64_t time : {1, 65, 300}) compare_with_state({2, time, time, 2, 6, 5}, {}, dtype);
      compare_with_state({2, 140, 140, 1, 5, 66}, {.eps = 0.1}, dtype, true);
    }
  }

  TEST_CASE("the fused projection, the sums alone, a step and a query") {
    manual_seed(4);
    const KeyMask keys = KeyMask::lengths({300, 77});
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      for (const bool causal : {true, false})
        check_devices({draw({2, 300, 3, 2, 7}, dtype), draw({2, 300, 2, 7}, dtype)},
                      [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
                        Tape tape;
                        const Variable qkv = Variable::leaf(x[0]);
                        const Variable out = linear_attention_qkv(qkv, {.causal = causal, .keys = &keys});
                        tape.backward(out, x[1]);
                        return {out.value(), qkv.grad()};
                      });
      check_devices({draw({2, 300, 2, 7}, dtype), draw({2, 300, 2, 70}, dtype)},
                    [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
                      const LinearState state = linear_attention_sums(x[0], x[1], {.keys = &keys});
                      return {state.s.value(), state.z.value()};
                    });
      const KeyMask key = KeyMask::lengths({1, 0, 1});
      for (const bool normalise : {true, false})
        check_devices({draw({3, 2, 70}, dtype), draw({3, 2, 70}, dtype), draw({3, 2, 45}, dtype)},
                      [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
                        LinearState state;
                        Tensor out, asked;
                        linear_attention_step(x[0], x[1], x[2], state, out, {.normalise = normalise});
                        linear_attention_step(x[1], x[0], x[2], state, out, {.normalise = normalise, .keys = &key});
                        linear_attention_query(x[0], state, asked, {.normalise = normalise});
                        return {out, asked, state.s.value(), state.z.value()};
                      });
    }
  }

  TEST_CASE("more heads than a grid's second axis takes") {
    manual_seed(5);
    const auto rows = [](int64_t width) { return draw({8200, 1, 8, width}, Dtype::f32); };
    check_devices({rows(2), rows(2), rows(3)}, [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {linear_attention(x[0], x[1], x[2], {.causal = true}).value()};
    });
  }

  TEST_CASE("a later row changes no earlier output, NaN and infinity included") {
    manual_seed(6);
    const auto rows = [](int64_t width) { return draw({1, 200, 1, width}, Dtype::f32).to(Device::cuda); };
    const Tensor q = rows(5), k = rows(5), v = rows(6), before = linear_attention(q, k, v, {.causal = true}).value();
    for (const double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
      for (const Tensor* x : {&q, &k, &v}) x->reshape({200, -1}).slice(150, 151).fill(bad);
      const Tensor after = linear_attention(q, k, v, {.causal = true}).value();
      CHECK(bit_equal(after.reshape({200, 6}).slice(0, 150).clone(), before.reshape({200, 6}).slice(0, 150).clone()));
    }
  }
}
