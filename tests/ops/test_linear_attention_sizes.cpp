// Linear attention with head sizes that fit no vector: every level against the plain loops in f64.
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

std::vector<Tensor> outputs_and_gradients(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& g,
                                          bool causal) {
  Tape tape;
  const Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  const Variable out = linear_attention(ql, kl, vl, {.causal = causal});
  tape.backward(out, g);
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

}  // namespace

TEST_CASE("dimensions around multiples of the vectors, D and M apart (LA19)") {
  manual_seed(19);
  const auto wide = [](const Tensor& x) { return x.to(Dtype::f64); };
  for (const int64_t dim : {1, 3, 17, 33, 65, 129, 257})
    for (const int64_t width : {1, 3, 17, 33, 65, 129, 257}) {
      CAPTURE(dim);
      CAPTURE(width);
      const Tensor q = Tensor::normal({1, 6, 2, dim}), k = Tensor::normal({1, 6, 2, dim}),
                   v = Tensor::normal({1, 6, 2, width});
      // dq and dk sum M terms that may cancel (all of them for D = 1): keep the sum of their sizes near 1.
      const Tensor g = Tensor::normal({1, 6, 2, width}, 0, 1 / std::sqrt(static_cast<double>(width)));
      for (const bool causal : {true, false}) {
        force_level(Level::plain);
        const auto reference = outputs_and_gradients(wide(q), wide(k), wide(v), wide(g), causal);
        unforce_level();
        CHECK(deviation(reference[0], quadratic(wide(q), wide(k), wide(v), {.causal = causal})) < 1e-12);
        for_each_level([&] {
          const auto got = outputs_and_gradients(q, k, v, g, causal);
          for (size_t i = 0; i < got.size(); ++i) CHECK(deviation(got[i], reference[i]) < 1e-5);
        });
      }
    }
}
