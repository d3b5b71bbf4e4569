#include "linnet/ops/linear.h"

#include <limits>

#include "linnet/core/compute.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

Tensor reference(const Tensor& x_any, const Tensor& weight_any, const Tensor& bias_any) {
  const auto here = [](const Tensor& any) { return any.defined() ? any.to(Device::cpu) : any; };
  const Tensor x = here(x_any), weight = here(weight_any), bias = here(bias_any);
  const int64_t in = weight.size(1), out = weight.size(0), rows = x.shape().first(x.rank() - 1).numel();
  Tensor y = Tensor::zeros(x.shape().with(-1, out), Dtype::f64, Device::cpu);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < out; ++o) {
      double& sum = y.mutable_data<double>()[r * out + o];
      if (bias.defined()) sum = bias.data<double>()[o];
      for (int64_t i = 0; i < in; ++i) sum += x.data<double>()[r * in + i] * weight.data<double>()[o * in + i];
    }
  return y;
}

struct Case {
  Shape x;
  int64_t out;
};
std::vector<Case> cases() {
  return {{{3, 4}, 5}, {{2, 3, 4}, 5}, {{4}, 3}, {{1, 7}, 1}, {{0, 4}, 5}, {{3, 0}, 5}, {{3, 4}, 0}, {{2, 29, 37}, 67}};
}

}  // namespace

TEST_CASE("linear: agrees with plain loops at every level") {
  for_each_level([](const char* level) {
    for (const Case& c : cases())
      for (bool biased : {false, true})
        for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
          INFO(level, " ", c.x.str(), " -> ", c.out, biased ? " with bias " : " ", name(dtype));
          const Tensor x = grid(c.x), weight = grid({c.out, c.x.size(-1)}, 0.005), bias = grid({c.out}, 0.009);
          const Variable b = biased ? Variable(bias.to(dtype)) : Variable();
          const Tensor y = linear(x.to(dtype), weight.to(dtype), b).value();
          CHECK(deviation(y, reference(x, weight, biased ? bias : Tensor())) <= (dtype == Dtype::f32 ? 1e-5 : 1e-12));
        }
  });
}

TEST_CASE("linear: gradients of input, weight and bias") {
  for (const Case& c : cases()) {
    INFO(c.x.str(), " -> ", c.out);
    const Tensor x = grid(c.x), weight = grid({c.out, c.x.size(-1)}, 0.005), bias = grid({c.out}, 0.009);
    check_gradients("linear", [](const std::vector<Variable>& in) { return linear(in[0], in[1], in[2]); },
                    {x, weight, bias}, {.full_below = 1024});
    check_gradients("linear", [](const std::vector<Variable>& in) { return linear(in[0], in[1]); }, {x, weight},
                    {.full_below = 1024});
  }
}

TEST_CASE("linear: what nobody wants is neither kept nor made") {
  const Variable x = grid({3, 4}), weight = Variable::leaf(grid({5, 4})), bias = Variable::leaf(grid({5}));
  Tape tape;
  const Variable y = linear(x, weight, bias);
  CHECK(tape.bytes_kept() == 3 * 4 * 8);  // x alone
  tape.backward(y, Tensor::full({3, 5}, 1, Dtype::f64));
  CHECK_FALSE(x.grad().defined());
  CHECK(bias.grad().to_vector<double>() == std::vector<double>(5, 3));
}

TEST_CASE("linear: a tied weight gets both gradients, once each (AG10)") {
  const Variable w = Variable::leaf(Tensor::full({1, 1}, 0.5));
  Tape tape;
  const Variable first = linear(Tensor::full({1, 1}, 2), w), second = linear(Tensor::full({1, 1}, 3), w);
  tape.backward({first, second}, {Tensor::full({1, 1}, 1), Tensor::full({1, 1}, 1)});
  CHECK(w.grad().item() == 5);
}

TEST_CASE("linear: memory full of NaN never comes through (BL1)") {
  for (Shape shape : {Shape{32, 16}, Shape{1, 16}}) {
    const Tensor x = grid(shape), weight = grid({24, 16}, 0.005), bias = grid({24}, 0.009);
    for (bool biased : {false, true}) {
      { Tensor dirt = Tensor::full({shape[0], 24}, std::numeric_limits<double>::quiet_NaN()); }
      const Variable b = biased ? Variable(bias.to(Dtype::f32)) : Variable();
      const Tensor y = linear(x.to(Dtype::f32), weight.to(Dtype::f32), b).value();
      CHECK(deviation(y, reference(x, weight, biased ? bias : Tensor())) <= 1e-5);
    }
  }
}

TEST_CASE("linear: errors") {
  const auto zeros = [](const Shape& s) { return Tensor::zeros(s); };
  CHECK(message_of([&] {
          linear(zeros({64, 7}), zeros({16, 8}));
        }) == "linear: input (64, 7) ends in 7 but weight (16, 8) takes 8");
  CHECK(message_of([&] {
          linear(zeros({64, 8}), zeros({16, 8}), zeros({8}));
        }) == "linear: bias (8) but weight (16, 8) gives 16");
  CHECK(message_of([&] { linear(zeros({64, 8}), zeros({8})); }) == "linear: weight (8) is not (out, in)");
  CHECK(message_of([&] {
          linear(zeros({}), zeros({16, 8}));
        }) == "linear: input () has no last axis; weight (16, 8) takes 8");
  CHECK_THROWS_AS(linear(zeros({64, 8}), Tensor::zeros({16, 8}, Dtype::f64)), Error);
  CHECK_THROWS_AS(linear(zeros({64, 8}), zeros({16, 8}), Tensor::zeros({16}, Dtype::f64)), Error);
}
