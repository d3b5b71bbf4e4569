#include "linnet/autograd/gradcheck.h"

#include <doctest/doctest.h>

#include "linnet/autograd/record.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"

using namespace linnet;

namespace {

Variable cube(const Variable& x, double factor) {
  Tensor square = compute::mul(x.value(), x.value());
  return record("cube", compute::mul(square, x.value()), {x}, keep(square),
                [factor](const Tensor& dy, const Tensor& s) -> Gradients {
                  return {compute::mul(dy, compute::scale(s, factor))};
                });
}

}  // namespace

TEST_CASE("a right gradient passes, by full Jacobian and by directions") {
  auto f = [](const std::vector<Variable>& x) { return cube(x[0], 3); };
  CHECK(gradcheck(f, {Tensor::normal({3, 2}, 0, 1, Dtype::f64)}) < 1e-7);
  CHECK(gradcheck(f, {Tensor::normal({100, 2}, 0, 1, Dtype::f64)}, {.full_below = 0}) < 1e-6);
  CHECK(gradcheck(f, {Tensor::zeros({0, 2}, Dtype::f64)}) == 0);
}

TEST_CASE("a wrong gradient is found and named") {
  auto f = [](const std::vector<Variable>& x) { return cube(x[0], 3.001); };
  try {
    gradcheck(f, {Tensor::full({1}, 2, Dtype::f64)});
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find(
              "gradcheck: input 0 of shape (1) element 0 by output element 0: backward gives 12.004") == 0);
  }
  CHECK_THROWS_AS(gradcheck(f, {Tensor::normal({100}, 0, 1, Dtype::f64)}, {.full_below = 0}), Error);
}

TEST_CASE("f32 inputs are refused") {
  CHECK_THROWS_WITH_AS(gradcheck([](const std::vector<Variable>& x) { return x[0]; }, {Tensor::zeros({1})}),
                       "gradcheck: input 0 is f32, f64 wanted", Error);
}

TEST_CASE("a missing function is refused; one that trains may draw what it seeds") {
  CHECK_THROWS_WITH_AS(gradcheck(nullptr, {Tensor::zeros({1}, Dtype::f64)}), "gradcheck: no function given", Error);
  const auto doubled_in_training = [](const std::vector<Variable>& x) {
    return training() ? cube(x[0], 3) : Variable(x[0].value().clone());
  };
  CHECK(gradcheck(doubled_in_training, {Tensor::full({2}, 2, Dtype::f64)}, {.training = true}) < 1e-6);
}
