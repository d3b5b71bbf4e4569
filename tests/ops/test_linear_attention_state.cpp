// The recurrent form: pieces with a carried state and single steps equal the whole.
#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

/// Steps begin .. end-1 of (batch, time, heads, dim).
Tensor piece(const Tensor& x, int64_t begin, int64_t end) { return compute::slice(x, 1, begin, end); }

Tensor one_step(const Tensor& x, int64_t t) { return piece(x, t, t + 1).reshape({x.size(0), x.size(2), x.size(3)}); }

struct Sequence {
  Tensor q, k, v, out;
  explicit Sequence(int64_t time) {
    manual_seed(9);
    q = Tensor::normal({2, time, 2, 32});
    k = Tensor::normal({2, time, 2, 32});
    v = Tensor::normal({2, time, 2, 32});
    out = linear_attention(q, k, v, {.causal = true}).value();
  }
};

}  // namespace

TEST_CASE("a run split at any point equals the whole run") {
  for_each_level([] {
    const Sequence x(512);
    for (int64_t at : {0, 1, 7, 255, 511, 512}) {
      const auto first = linear_attention_with_state(piece(x.q, 0, at), piece(x.k, 0, at), piece(x.v, 0, at), {});
      const auto second =
          linear_attention_with_state(piece(x.q, at, 512), piece(x.k, at, 512), piece(x.v, at, 512), first.state);
      CHECK(deviation(first.out.value(), piece(x.out, 0, at)) < 1e-5);
      CHECK(deviation(second.out.value(), piece(x.out, at, 512)) < 1e-5);
    }
  });
}

TEST_CASE("single steps equal the whole run") {
  for_each_level([] {
    const Sequence x(512);
    LinearState state;
    Tensor out;
    for (int64_t t = 0; t < 512; ++t) {
      linear_attention_step(one_step(x.q, t), one_step(x.k, t), one_step(x.v, t), state, out);
      CHECK(deviation(out, one_step(x.out, t)) < 1e-5);
    }
    const auto whole = linear_attention_with_state(x.q, x.k, x.v, {});
    CHECK(deviation(state.s.value(), whole.state.s.value()) < 1e-5);
    CHECK(deviation(state.z.value(), whole.state.z.value()) < 1e-5);
  });
}

TEST_CASE("a fused step equals a step") {
  const Tensor qkv = Tensor::normal({2, 3, 4, 5});
  const auto part = [&](int64_t i) { return compute::slice(qkv, 1, i, i + 1).reshape({2, 4, 5}); };
  LinearState fused, apart;
  Tensor a, b;
  for (int i = 0; i < 3; ++i) {
    linear_attention_step_qkv(qkv, fused, a);
    linear_attention_step(part(0), part(1), part(2), apart, b);
    CHECK(bit_equal(a, b));
  }
  CHECK(bit_equal(fused.s.value(), apart.s.value()));
}

TEST_CASE("a step with a masked key leaves the state as it was") {
  const Tensor q = Tensor::normal({2, 1, 3}), k = Tensor::normal({2, 1, 3}), v = Tensor::normal({2, 1, 3});
  LinearState state;
  Tensor out;
  linear_attention_step(q, k, v, state, out);
  const LinearState before = state;
  const KeyMask mask = KeyMask::lengths({1, 0});
  linear_attention_step(q, k, v, state, out, {.keys = &mask});
  CHECK_FALSE(bit_equal(state.s.value().slice(0, 1).clone(), before.s.value().slice(0, 1).clone()));
  CHECK(bit_equal(state.s.value().slice(1, 2).clone(), before.s.value().slice(1, 2).clone()));
}

TEST_CASE("a copied state is its own, and so is one that came from a tape or is held elsewhere") {
  const Tensor q = Tensor::normal({1, 1, 3}), k = Tensor::normal({1, 1, 3}), v = Tensor::normal({1, 1, 3});
  LinearState state;
  Tensor out;
  linear_attention_step(q, k, v, state, out);
  const LinearState copy = state;
  const Tensor held = state.s.value(), before = held.clone();
  linear_attention_step(q, k, v, state, out);
  CHECK(bit_equal(copy.s.value(), before));
  CHECK(bit_equal(held, before));

  Tape tape;
  const Variable leaf = Variable::leaf(k.reshape({1, 1, 1, 3}));
  const auto r = linear_attention_with_state(q.reshape({1, 1, 1, 3}), leaf, v.reshape({1, 1, 1, 3}), {});
  LinearState recorded = r.state;  // still carries the gradient
  const Tensor value = recorded.s.value().clone();
  {
    Tape::Pause pause;
    linear_attention_step(q, k, v, recorded, out);
  }
  CHECK(bit_equal(r.state.s.value(), value));
  tape.backward(r.state.s, Tensor::full({1, 1, 3, 3}, 1));
  CHECK(leaf.grad().defined());
}

TEST_CASE("errors of the recurrent form") {
  const Tensor q = Tensor::zeros({2, 1, 3}), v = Tensor::zeros({2, 1, 4});
  Tensor out;
  LinearState state;
  {
    Tape tape;
    CHECK(message_of([&] { linear_attention_step(q, q, v, state, out); }) ==
          "linear_attention_step: changes its state in place, which a tape cannot replay; use "
          "linear_attention_with_state while a tape records, or Tape::Pause");
  }
  linear_attention_step(q, q, v, state, out);
  CHECK(message_of([&] { linear_attention_step(v, v, v, state, out); }) ==
        "linear_attention_step: state s (2, 1, 3, 4) is not (batch, heads, D, M) = (2, 1, 4, 4)");
  Tensor wrong = Tensor::zeros({2, 4});
  CHECK(message_of([&] { linear_attention_step(q, q, v, state, wrong); }) ==
        "linear_attention_step: out (2, 4) is not (batch, heads, M) = (2, 1, 4)");
  CHECK(message_of([&] {
          linear_attention_step(Tensor::zeros({2, 3}), q, v, state, out);
        }) == "linear_attention_step: q (2, 3) is not (batch, heads, dim)");
  LinearState half;
  half.z = Tensor::zeros({2, 1, 3});
  const Tensor x = Tensor::zeros({2, 5, 1, 3});
  CHECK(message_of([&] { linear_attention_with_state(x, x, x, half); }) ==
        "linear_attention_with_state: the state has only one of s and z");
}

TEST_CASE("a step may write into the memory of its inputs; states made of the same Variables go their own ways") {
  manual_seed(4);
  const Tensor q = Tensor::normal({2, 3, 4}), k = Tensor::normal({2, 3, 4}), v = Tensor::normal({2, 3, 4});
  const auto second_step = [&](int which) {
    Tensor in[3] = {q.clone(), k.clone(), v.clone()}, out, first;
    LinearState state;
    linear_attention_step(q, v, k, state, first);
    if (which < 3) out = in[which];
    linear_attention_step(in[0], in[1], in[2], state, out);
    if (which < 3) CHECK(bit_equal(out, in[which]));
    return out;
  };
  for_each_level([&] {
    for (int which : {0, 1, 2}) CHECK(bit_equal(second_step(which), second_step(3)));
  });

  const Variable s = Tensor::zeros({2, 3, 4, 4}), z = Tensor::zeros({2, 3, 4});
  LinearState a(s, z), b(s, z);
  Tensor out;
  linear_attention_step(q, k, v, a, out);
  CHECK(bit_equal(b.s.value(), Tensor::zeros({2, 3, 4, 4})));
  CHECK(bit_equal(z.value(), Tensor::zeros({2, 3, 4})));
}

TEST_CASE("the sums over all keys are the state that the causal form ends in") {
  for_each_level([] {
    for (const int64_t time : {0, 1, 37}) {
      const Tensor k = Tensor::normal({2, time, 3, 5}), v = Tensor::normal({2, time, 3, 7});
      const KeyMask keys = KeyMask::lengths({static_cast<int32_t>(time), static_cast<int32_t>(time / 2)});
      const LinearState sums = linear_attention_sums(k, v, {.keys = &keys}),
                        last = linear_attention_with_state(k, k, v, {}, {.keys = &keys}).state;
      CHECK(deviation(sums.s.value(), last.s.value()) < 1e-5);
      CHECK(deviation(sums.z.value(), last.z.value()) < 1e-5);
    }
  });
  const Tensor k = Tensor::normal({2, 3, 4, 5});
  CHECK_THROWS_WITH_AS(linear_attention_sums(k, Tensor::normal({2, 4, 4, 5})),
                       doctest::Contains("linear_attention_sums: "), Error);
  Tape tape;
  CHECK_THROWS_WITH_AS(linear_attention_sums(k, k), doctest::Contains("linear_attention_sums: is not recorded"), Error);
}
