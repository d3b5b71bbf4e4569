#include "linnet/optim/clip.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace linnet;
using optim::clip_grad_norm;
using optim::clip_grad_value;

namespace {

Variable with_gradient(const Tensor& gradient, const std::string& name = "w") {
  Variable w = Variable::leaf(Tensor::zeros(gradient.shape(), gradient.dtype()), name);
  w.mutable_grad() = gradient.clone();
  return w;
}

}  // namespace

TEST_CASE("gradients are scaled together, and only where their norm is too large") {
  Variable a = with_gradient(Tensor::from<float>({3}, {1})), b = with_gradient(Tensor::from<double>({0, 4}, {2}));
  Variable none = Variable::leaf(Tensor::zeros({2}));
  CHECK(clip_grad_norm({a, b, none}, 10) == 5);
  CHECK(a.grad().item() == 3);
  CHECK(clip_grad_norm({a, b, none, a}, 1) == 5);  // a counts once
  CHECK(std::abs(a.grad().item() - .6) < 1e-7);
  CHECK(std::abs(b.grad().to_vector<double>()[1] - .8) < 1e-15);
  CHECK(clip_grad_norm({none}, 1) == 0);
  CHECK_FALSE(none.grad().defined());
}

TEST_CASE("many gradients of every size have one norm, and are scaled together") {
  std::vector<Variable> parameters;
  double sum = 0;
  for (const int64_t n : {0, 1, 33, 4096, 4097, 0, 70001}) {
    parameters.push_back(with_gradient(Tensor::full({n}, 0.5, n % 2 ? Dtype::f64 : Dtype::f32)));
    sum += 0.25 * static_cast<double>(n);
  }
  CHECK(std::abs(clip_grad_norm(parameters, 2) / std::sqrt(sum) - 1) < 1e-14);
  for (const Variable& parameter : parameters)
    for (double g : parameter.grad().to(Dtype::f64).to_vector<double>())
      REQUIRE(std::abs(g * std::sqrt(sum) - 1) < (parameter.dtype() == Dtype::f32 ? 1e-6 : 1e-14));
}

TEST_CASE("LS6: the norm does not overflow, nor vanish") {
  Variable w = with_gradient(Tensor::full({100}, 1e20));
  CHECK(std::abs(clip_grad_norm({w}, 1) / 1e21 - 1) < 1e-7);
  for (float g : w.grad().to_vector<float>()) CHECK(std::abs(g - .1f) < 1e-7f);
  for (double size : {1e200, 1e-200}) {
    Variable wide = with_gradient(Tensor::full({100}, size, Dtype::f64));
    CHECK(std::abs(clip_grad_norm({wide}, size) / (10 * size) - 1) < 1e-12);
    CHECK(std::abs(wide.grad().to_vector<double>()[0] / (size / 10) - 1) < 1e-12);
  }
}

TEST_CASE("LS6: gradients that are not finite are refused by name and left alone") {
  for (double bad : {INFINITY, -INFINITY, NAN}) {
    Variable a = with_gradient(Tensor::full({3}, 100), "a"),
             b = with_gradient(Tensor::full({2}, bad), "blocks.0.weight");
    CHECK_THROWS_WITH_AS(clip_grad_norm({a, b}, 1),
                         "clip_grad_norm: the gradient of parameter \"blocks.0.weight\" has a value that is not finite",
                         Error);
    CHECK_THROWS_WITH_AS(
        clip_grad_value({a, b}, 1),
        "clip_grad_value: the gradient of parameter \"blocks.0.weight\" has a value that is not finite", Error);
    CHECK(a.grad().to_vector<float>() == std::vector<float>{100, 100, 100});
    Variable nameless = with_gradient(Tensor::full({2}, bad), "");
    CHECK_THROWS_WITH_AS(clip_grad_norm({a, nameless}, 1),
                         "clip_grad_norm: the gradient of parameter 1 has a value that is not finite", Error);
  }
}

TEST_CASE("clipping by value clamps each element and returns the norm before") {
  Variable w = with_gradient(Tensor::from<float>({-3, 0.5, 4}, {3}));
  CHECK(std::abs(clip_grad_value({w}, 1) - std::sqrt(25.25)) < 1e-6);
  CHECK(w.grad().to_vector<float>() == std::vector<float>{-1, .5, 1});
}

TEST_CASE("a bound that is not above 0 is refused") {
  Variable w = with_gradient(Tensor::full({3}, 1));
  CHECK_THROWS_WITH_AS(clip_grad_norm({w}, 0), "clip_grad_norm: max_norm 0 given, wanted: above 0", Error);
  CHECK_THROWS_WITH_AS(clip_grad_norm({w}, NAN), "clip_grad_norm: max_norm nan given, wanted: above 0", Error);
  CHECK_THROWS_WITH_AS(clip_grad_value({w}, -1), "clip_grad_value: limit -1 given, wanted: above 0", Error);
}

TEST_CASE("a factor below the normal numbers scales well; a gradient of integers is named") {
  Variable w = with_gradient(Tensor::full({2}, 3e38));
  clip_grad_norm({w}, 1e-10);
  for (float g : w.grad().to_vector<float>())
    CHECK(g == doctest::Approx(1e-10 / std::sqrt(2.0)).epsilon(1e-6).scale(0));
  Variable wide = with_gradient(Tensor::full({2}, 1e300, Dtype::f64));
  clip_grad_norm({wide}, 1e-300);
  for (double g : wide.grad().to_vector<double>())
    CHECK(g * 1e300 == doctest::Approx(1 / std::sqrt(2.0)).epsilon(1e-12));
  w.mutable_grad() = Tensor::full({2}, 3, Dtype::i32);
  CHECK_THROWS_WITH_AS(clip_grad_norm({w}, 1),
                       "clip_grad_norm: the gradient of parameter \"w\" is i32, f32 or f64 wanted", Error);
}
