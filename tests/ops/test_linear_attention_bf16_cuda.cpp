// Linear attention with products in bfloat16, on a GPU's tensor cores, against the same in full: both ways.
#include <optional>

#include "linnet/autograd/tape.h"
#include "linnet/core/dispatch.h"
#include "linnet/core/random.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

struct Sizes {
  int64_t time, dim, value_dim;
};

Tensor draw(const Shape& shape) { return Tensor::normal(shape, 0, 1, Dtype::f32, Device::cpu); }
Tensor integers(const Shape& shape, double value) { return Tensor::full(shape, value, Dtype::f32, Device::cpu); }

/// The largest |a - b|, divided by the largest |b|.
double distance(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  double gap = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= gap)) gap = std::abs(x[i] - y[i]);
    size = std::max<double>(size, std::abs(y[i]));
  }
  return size > 0 ? gap / size : gap;
}

/// What a call gives: out, dq, dk, dv; from a state (x has s and z) also the state that it ends in, ds and dz.
std::vector<Tensor> run(const std::vector<Tensor>& x, const LinearAttentionOptions& options, Precision precision) {
  LinearAttentionOptions asked = options;
  asked.precision = precision;
  std::vector<Variable> leaves;
  for (const Tensor& each : x) leaves.push_back(Variable::leaf(each.to(Device::cuda)));
  const Tensor g = x[3].to(Device::cuda);
  Tape tape;
  if (x.size() == 4) {
    const Variable out = linear_attention(leaves[0], leaves[1], leaves[2], asked);
    tape.backward(out, g);
    return {out.value(), leaves[0].grad(), leaves[1].grad(), leaves[2].grad()};
  }
  const auto r = linear_attention_with_state(leaves[0], leaves[1], leaves[2], {leaves[4], leaves[5]}, asked);
  tape.backward({r.out, r.state.s, r.state.z}, {g, leaves[4].value(), leaves[5].value()});
  return {r.out.value(),     leaves[0].grad(),  leaves[1].grad(), leaves[2].grad(),
          r.state.s.value(), r.state.z.value(), leaves[4].grad(), leaves[5].grad()};
}

/// In bf16 within `bound` of those in full, and not the same; states, which are summed in full, as near as in full.
void compare(const std::vector<Tensor>& x, const LinearAttentionOptions& options, double bound = 0.015) {
  CAPTURE(x[0].shape());
  CAPTURE(x[2].shape());
  CAPTURE(options.causal);
  CAPTURE(options.normalise);
  const std::vector<Tensor> near = run(x, options, Precision::bf16), full = run(x, options, Precision::full);
  for (size_t i = 0; i < full.size(); ++i) {
    CAPTURE(i);
    const double off = distance(near[i], full[i]);
    CHECK(off < bound);
    if (i < 4) CHECK(off > 1e-5);
  }
}

std::vector<Tensor> inputs(const Sizes& n, bool has_state = false) {
  const auto rows = [&](int64_t width) { return draw({2, n.time, 1, width}); };
  std::vector<Tensor> x{rows(n.dim), rows(n.dim), rows(n.value_dim), rows(n.value_dim)};
  if (has_state) {
    x.push_back(draw({2, 1, n.dim, n.value_dim}));
    x.push_back(Tensor::uniform({2, 1, n.dim}, 0.5, 1, Dtype::f32, Device::cpu));
  }
  return x;
}

}  // namespace

TEST_SUITE("linear attention in bfloat16" * doctest::skip(!cuda_available())) {
  TEST_CASE("bf16 products are near those in full, and sums are not rounded") {
    manual_seed(7);
    const KeyMask keys = KeyMask::lengths({300, 150});
    const QueryMask queries = QueryMask::lengths({290, 300});
    for (const auto& [dim, width] : {std::pair<int64_t, int64_t>{64, 64}, {33, 70}, {5, 3}}) {
      const auto rows = [](int64_t n) { return draw({2, 300, 2, n}); };
      const Tensor q = rows(dim), k = rows(dim), v = rows(width),
                   ones = Tensor::full(v.shape(), 1, Dtype::f32, Device::cpu);
      for (const bool causal : {true, false})
        for (const bool normalise : {true, false}) {
          const LinearAttentionOptions full{
              .causal = causal, .normalise = normalise, .keys = &keys, .queries = &queries};
          LinearAttentionOptions rounded = full;
          rounded.precision = Precision::bf16;
          const auto there = [&](const Tensor& values, const LinearAttentionOptions& options) {
            return linear_attention(q.to(Device::cuda), k.to(Device::cuda), values.to(Device::cuda), options).value();
          };
          const Tensor exact = linear_attention(q, k, v, full).value(), near = there(v, rounded);
          CHECK(deviation(near, exact) < 0.02);
          CHECK(deviation(near, exact) > 1e-5);  // it was not computed in full
          if (normalise) CHECK(deviation(there(ones, rounded), linear_attention(q, k, ones, full).value()) < 0.005);
          CHECK(deviation(linear_attention(q, k, v, rounded).value(), exact) == 0);  // the CPU computes in full
        }
    }
  }

  // One row's dq and dk are what rounding leaves of a difference of equal numbers, unless eps is in it.
  TEST_CASE("gradients: lengths around chunks and segments") {
    manual_seed(1);
    for (const int64_t time : {1, 63, 64, 65, 127, 129, 1025})
      for (const bool causal : {true, false}) {
        compare(inputs({time, 17, 16}), {.causal = causal, .eps = time == 1 ? 100. : 1.});
        if (causal) compare(inputs({time, 16, 3}, true), {.causal = true});
      }
  }

  TEST_CASE("gradients: widths that fit no tile, and those of which a part or all is done in full") {
    manual_seed(2);
    for (const auto& [dim, width] :
         {std::pair<int64_t, int64_t>{3, 16}, {16, 17}, {33, 3}, {64, 64}, {17, 65}, {100, 33}, {128, 129}})
      for (const bool causal : {true, false}) compare(inputs({70, dim, width}), {.causal = causal});
  }

  // The normaliser takes the values' mean out of dq and dk again, N times it: what is left must not be its rounding.
  TEST_CASE("gradients: values far from zero") {
    manual_seed(3);
    for (const bool causal : {true, false}) {
      std::vector<Tensor> x = inputs({700, 8, 8});
      x[2] = Tensor::normal(x[2].shape(), 2, 1, Dtype::f32, Device::cpu);
      compare(x, {.causal = causal}, 0.02);
    }
  }

  TEST_CASE("gradients: every option") {
    manual_seed(3);
    const KeyMask keys = KeyMask::lengths({140, 90});
    const QueryMask queries = QueryMask::lengths({100, 140});
    for (const FeatureMap map : {FeatureMap::elu1, FeatureMap::relu, FeatureMap::identity})
      for (const bool causal : {true, false})
        for (const bool normalise : {true, false}) {
          if (normalise && map == FeatureMap::identity) continue;
          LinearAttentionOptions options{.feature_map = map, .causal = causal, .normalise = normalise};
          if (normalise) options.eps = 0.5;
          compare(inputs({140, 6, 5}), options);
          options.keys = &keys;
          options.queries = &queries;
          compare(inputs({140, 6, 5}), options);
          if (causal) compare(inputs({140, 6, 5}, true), options);
        }
  }

  // What is 1 is not rounded, nor is 64 times less than 256; what they add up to would be, in 8 bits.
  TEST_CASE("sums are not rounded, on no way") {
    const auto rows = [](int64_t width) { return integers({1, 200, 1, width}, 1); };
    std::vector<Tensor> x{rows(3), rows(3), rows(2), rows(2)};
    const LinearAttentionOptions options{.feature_map = FeatureMap::identity, .causal = true, .normalise = false};
    for (const bool has_state : {false, true}) {
      if (has_state) {
        x.push_back(integers({1, 1, 3, 2}, 4096));
        x.push_back(integers({1, 1, 3}, 4096));
      }
      const std::vector<Tensor> near = run(x, options, Precision::bf16), full = run(x, options, Precision::full);
      for (size_t i = 0; i < full.size(); ++i) CHECK(bit_equal(near[i], full[i]));
    }
  }
}
