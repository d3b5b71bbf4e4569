// Threads inside a head: a few long heads, cut into segments, against one thread.
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/levels.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

struct Problem {
  Tensor q, k, v, s, z, g;
  std::vector<int32_t> lengths;
};

Problem problem(int64_t batch, int64_t time, int64_t heads, int64_t dim, int64_t width, Dtype dtype) {
  std::vector<int32_t> lengths(static_cast<size_t>(batch), static_cast<int32_t>(time));
  lengths.back() -= 7;
  return {Tensor::normal({batch, time, heads, dim}, 0, 1, dtype),
          Tensor::normal({batch, time, heads, dim}, 0, 1, dtype),
          Tensor::normal({batch, time, heads, width}, 0, 1, dtype),
          Tensor::normal({batch, heads, dim, width}, 0, 1, dtype),
          Tensor::uniform({batch, heads, dim}, 0.5, 1, dtype),
          Tensor::normal({batch, time, heads, width}, 0, 1, dtype),
          lengths};
}

/// Outputs, final state and all gradients; backward with another number of threads where one is given.
std::vector<Tensor> run(const Problem& p, int backward_threads = 0) {
  Tape tape;
  const Variable q = Variable::leaf(p.q), k = Variable::leaf(p.k), v = Variable::leaf(p.v), s = Variable::leaf(p.s),
                 z = Variable::leaf(p.z);
  const KeyMask keys = KeyMask::lengths(p.lengths);
  const auto r = linear_attention_with_state(q, k, v, {s, z}, {.causal = true, .keys = &keys});
  if (backward_threads) set_num_threads(backward_threads);
  tape.backward({r.out, r.state.s, r.state.z},
                {p.g, Tensor::full(p.s.shape(), 0.5, p.s.dtype()), Tensor::full(p.z.shape(), -0.5, p.z.dtype())});
  return {r.out.value(), r.state.s.value(), r.state.z.value(), q.grad(), k.grad(), v.grad(), s.grad(), z.grad()};
}

/// Without a state, from the fused projection.
std::vector<Tensor> run_fused(const Tensor& qkv, const Tensor& g) {
  Tape tape;
  const Variable x = Variable::leaf(qkv);
  const Variable out = linear_attention_qkv(x, {.causal = true});
  tape.backward(out, g);
  return {out.value(), x.grad()};
}

void check_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance) {
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(deviation(a[i], b[i]) < tolerance);
  }
}

struct Threads {
  int before = num_threads();
  ~Threads() { set_num_threads(before); }
};

}  // namespace

TEST_CASE("the number of threads changes only the rounding, and a second run nothing") {
  const Threads restore;
  manual_seed(13);
  for_each_level([&] {
    for (const auto& [batch, heads] : {std::pair<int64_t, int64_t>{1, 1}, {1, 2}, {2, 1}, {1, 3}}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
        const Problem p = problem(batch, 1100, heads, 19, 33, dtype);
        const Tensor qkv = Tensor::normal({batch, 1100, 3, heads, 16}, 0, 1, dtype),
                     g = Tensor::normal({batch, 1100, heads, 16}, 0, 1, dtype);
        const double tolerance = dtype == Dtype::f32 ? 1e-4 : 1e-11;
        set_num_threads(1);
        const auto one = run(p), one_fused = run_fused(qkv, g);
        for (int threads : {2, 3, 8}) {
          CAPTURE(threads);
          CAPTURE(heads);
          set_num_threads(threads);
          const auto many = run(p);
          check_close(many, one, tolerance);
          check_close(run_fused(qkv, g), one_fused, tolerance);
          check_close(run(p), many, 1e-300);
        }
      }
    }
  });
}

TEST_CASE("a long head in pieces, one after the other or on several threads, equals the plain kernels on all of it") {
  const Threads restore;
  manual_seed(14);
  const Problem p = problem(2, 4500, 1, 5, 3, Dtype::f64);
  force_level(Level::plain);
  set_num_threads(4);
  const auto right = run(p);  // in two segments, whose borders lie elsewhere
  unforce_level();
  for_each_level([&] {
    for (const int forward : {1, 4}) {
      for (const int backward : {1, 4}) {
        CAPTURE(forward);
        CAPTURE(backward);
        set_num_threads(forward);
        check_close(run(p, backward), right, 1e-10);
      }
    }
  });
  const Problem many = problem(3, 4500, 2, 5, 3, Dtype::f64);  // two threads share the heads of a sample
  set_num_threads(1);
  const auto one = run(many);
  for (const int threads : {2, 4}) {
    set_num_threads(threads);
    check_close(run(many), one, 1e-300);
  }
}
