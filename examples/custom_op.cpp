// An op of your own, with nothing in linnet touched: swish(x) = x sigmoid(beta x), its gradient by hand, checked, used.
#include <iostream>
#include <string>

#include "linnet/core/compute.h"
#include "linnet/linnet.h"
#include "support/device.h"
#include "support/program.h"

using namespace linnet;

/// swish(x) = x s with s = sigmoid(beta x), element by element (Ramachandran, Zoph and Le 2017); f32 or f64.
/// d swish / dx = s + beta x s (1 - s). Keeps x alone: s is cheap to compute again.
Variable swish(const Variable& xv, double beta = 1) {
  const Tensor& x = xv.value();
  LINNET_CHECK(is_float(x.dtype()), "swish: input is ", x.dtype(), ", f32 or f64 wanted");
  Tensor s = compute::unary(UnaryOp::Sigmoid, compute::scale(x, beta));
  return record("swish", compute::mul(x, s), {xv}, keep(x),
                [beta](const Tensor& dy, const Tensor& x_kept) -> Gradients {
                  Tensor s_again = compute::unary(UnaryOp::Sigmoid, compute::scale(x_kept, beta));
                  Tensor through_s = compute::unary_slope(UnaryOp::Sigmoid, {}, s_again, dy);  // dy s (1 - s)
                  Tensor dx = compute::mul(dy, s_again);
                  compute::accumulate_inplace(dx, compute::scale(compute::mul(through_s, x_kept), beta));
                  return {dx};
                });
}

/// The same, composed of ops that are there: no gradient to derive, but each of them keeps what it needs.
Variable composed_swish(const Variable& x, double beta = 1) { return x * sigmoid(beta * x); }

/// The same value with a gradient that forgets how s depends on x.
Variable wrong_swish(const Variable& xv) {
  Tensor s = compute::unary(UnaryOp::Sigmoid, xv.value());
  return record("wrong_swish", compute::mul(xv.value(), s), {xv}, keep(s),
                [](const Tensor& dy, const Tensor& s_kept) -> Gradients { return {compute::mul(dy, s_kept)}; });
}

int show() {
  const Tensor x = Tensor::normal({3, 5}, 0, 2, Dtype::f64);
  const double deviation = gradcheck([](const std::vector<Variable>& v) { return swish(v[0], 1.5); }, {x});
  std::cout << "gradcheck of swish: largest deviation from central differences " << deviation << "\n\n";

  try {
    gradcheck([](const std::vector<Variable>& v) { return wrong_swish(v[0]); }, {x});
    std::cout << "the wrong gradient was not noticed\n";
    return 1;
  } catch (const Error& error) {
    std::cout << "gradcheck of a wrong gradient:\n  " << error.what() << "\n\n";
  }

  Variable w = Variable::leaf(Tensor::normal({1000}));
  {
    Tape tape;
    const Variable loss = mean(square(swish(w) - 1));
    tape.backward(loss);
    std::cout << "one op:\n" << tape.report().table() << "\n";
  }
  {
    Tape tape;
    const Variable loss = mean(square(composed_swish(w) - 1));
    tape.backward(loss);
    std::cout << "composed:\n" << tape.report().table() << "\n";
  }
  try {
    (void)swish(Tensor::arange(3));
  } catch (const Error& error) {
    std::cout << "whole numbers: " << error.what() << "\n";
  }
  return 0;
}

int main(int argc, char** argv) {
  CLI::App app("An op of your own: its value, its gradient, what it keeps.", "custom_op");
  std::string device;
  example::add_device(app, device);
  return example::run_program(app, argc, argv, [&] {
    example::use_device(device);
    return show();
  });
}
