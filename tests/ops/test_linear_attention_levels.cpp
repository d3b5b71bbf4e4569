// The fast form of every level against the plain loops, for dims around and off the vector sizes.
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "support/arrays.h"
#include "support/levels.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

/// Output and gradients, one after the other.
std::vector<Tensor> run(const Tensor& q, const Tensor& k, const Tensor& v, const LinearState& state, const Tensor& g,
                        const LinearAttentionOptions& options) {
  Tape tape;
  const Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  if (!options.causal) {
    const Variable out = linear_attention(ql, kl, vl, options);
    tape.backward(out, g);
    return {out.value(), ql.grad(), kl.grad(), vl.grad()};
  }
  const Variable s = Variable::leaf(state.s.value()), z = Variable::leaf(state.z.value());
  const auto r = linear_attention_with_state(ql, kl, vl, {s, z}, options);
  tape.backward({r.out, r.state.s, r.state.z},
                {g, Tensor::full(s.shape(), 0.5, s.dtype()), Tensor::full(z.shape(), -0.5, z.dtype())});
  return {r.out.value(), r.state.s.value(), r.state.z.value(), ql.grad(), kl.grad(), vl.grad(), s.grad(), z.grad()};
}

void compare(int64_t time, int64_t dim, int64_t width, Dtype dtype, double tolerance) {
  CAPTURE(time);
  CAPTURE(dim);
  CAPTURE(width);
  const KeyMask keys = KeyMask::array(Tensor::from(
      [&] {
        std::vector<uint8_t> mask(static_cast<size_t>(2 * time), 1);
        mask.back() = mask.front() = 0;
        return mask;
      }(),
      {2, time}));
  const Tensor q = Tensor::normal({2, time, 2, dim}, 0, 1, dtype), k = Tensor::normal({2, time, 2, dim}, 0, 1, dtype),
               v = Tensor::normal({2, time, 2, width}, 0, 1, dtype),
               g = Tensor::normal({2, time, 2, width}, 0, 1, dtype);
  const LinearState state(Tensor::normal({2, 2, dim, width}, 0, 1, dtype), Tensor::uniform({2, 2, dim}, 0.5, 1, dtype));
  for (const bool causal : {true, false}) {
    const LinearAttentionOptions options{.causal = causal, .keys = &keys};
    std::vector<Tensor> plain;
    for_each_level([&] {
      const auto got = run(q, k, v, state, g, options);
      if (plain.empty()) plain = got;
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(deviation(got[i], plain[i]) < tolerance);
      }
    });
  }
}

}  // namespace

TEST_CASE("every level agrees with the plain loops, whatever the dims") {
  if (test::on_cuda()) return;  // levels are the CPU's
  manual_seed(11);
  for (int64_t dim : {1, 3, 16, 17, 31, 32, 33, 64, 100, 129, 257})
    for (int64_t width : {1, 3, 16, 17, 31, 32, 33, 64, 100, 129, 257}) compare(5, dim, width, Dtype::f32, 2e-5);
}

TEST_CASE("every level agrees with the plain loops, whatever the length") {
  if (test::on_cuda()) return;
  manual_seed(12);
  for (int64_t time = 1; time <= 129; time = time == 67 ? 127 : time + 1)
    for (const auto& [dim, width] : {std::pair<int64_t, int64_t>{16, 16}, {32, 32}, {15, 40}}) {
      compare(time, dim, width, Dtype::f32, 2e-5);
      compare(time, dim, width, Dtype::f64, 1e-12);
    }
}
