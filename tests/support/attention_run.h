// An attention run forward and back, and how two such runs compare.
#pragma once
#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "support/attention.h"
#include "support/modules.h"

namespace linnet::test {

struct AttentionRun {
  Tensor out, dq, dk, dv;
};

/// attention(q, k, v) and its gradients for one random gradient of the output.
template <class Attention>
AttentionRun run_attention(const Tensor& q, const Tensor& k, const Tensor& v, Attention attention) {
  Tape tape;
  const Variable ql = Variable::leaf(q), kl = Variable::leaf(k), vl = Variable::leaf(v);
  const Variable out = attention(ql, kl, vl);
  tape.backward(out, normal(out.shape(), 77, out.dtype()));
  return {out.value(), ql.grad(), kl.grad(), vl.grad()};
}

inline void check_near(const AttentionRun& a, const AttentionRun& b, double tolerance) {
  CHECK(deviation(a.out, b.out) < tolerance);
  CHECK(deviation(a.dq, b.dq) < tolerance);
  CHECK(deviation(a.dk, b.dk) < tolerance);
  CHECK(deviation(a.dv, b.dv) < tolerance);
}

inline bool all_zero(const Tensor& x) { return compute::sum_of_squares(x) == 0; }

/// Every output and gradient of sample b from step `length` on is 0, and all is finite.
inline void check_nothing_after(std::initializer_list<Tensor> all, int64_t b, int64_t length) {
  for (const Tensor& x : all) {
    if (!x.defined()) continue;
    CHECK(compute::all_finite(x));
    CHECK(all_zero(compute::slice(x.slice(b, b + 1), 1, length, x.size(1))));
  }
}

}  // namespace linnet::test
