#include "linnet/ops/cumsum.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "linnet/core/compute.h"
#include "support/arrays.h"
#include "support/both_devices.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The sum that each element is to be, added up as one writes it.
template <class T>
Tensor reference(const Tensor& x, int axis, bool reverse) {
  const int64_t n = x.shape()[axis], inner = x.shape().last(x.rank() - axis - 1).numel();
  const std::vector<T> from = x.to_vector<T>();
  std::vector<T> to(from.size());
  for (size_t start = 0; start < from.size(); ++start) {
    const auto step = static_cast<size_t>(inner);
    if (static_cast<int64_t>(start / step) % n) continue;
    long double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      const size_t at = start + static_cast<size_t>(reverse ? n - 1 - i : i) * step;
      total += from[at];
      to[at] = static_cast<T>(total);
    }
  }
  return Tensor::from(to, x.shape());
}

std::vector<double> row(const std::vector<double>& values, bool reverse = false, Dtype dtype = Dtype::f64) {
  const Tensor x = Tensor::from(values, {static_cast<int64_t>(values.size())}).to(dtype);
  return cumsum(x, 0, reverse).value().to(Dtype::f64).to_vector<double>();
}

}  // namespace

TEST_CASE("cumsum agrees with a plain loop along every axis, at every level") {
  for_each_level([](const std::string& level_name) {
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{4, 3, 5}, Shape{2, 3, 2, 600}, Shape{37, 129}})
      for (int axis = 0; axis < shape.rank(); ++axis)
        for (const bool reverse : {false, true}) {
          INFO(shape, " axis ", axis, ", level ", level_name);
          const Tensor x = grid(shape), narrow = x.to(Dtype::f32);
          const Tensor y = cumsum(x, axis, reverse).value(), y32 = cumsum(narrow, axis, reverse).value();
          CHECK(deviation(y, reference<double>(x, axis, reverse)) <= 1e-14);
          CHECK(deviation(y32, reference<float>(narrow, axis, reverse)) <= 1.2e-7);
          CHECK(same_bits(cumsum(x, axis - shape.rank(), reverse).value(), y));
        }
  });
}

TEST_CASE("cumsum of rows and columns of every length that a GPU treats in its own way, and of many") {
  for (const int64_t n : {1, 2, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1023, 1024, 1025, 5000})
    for (const Shape& shape : {Shape{3, n}, Shape{n, 3}})
      for (const bool reverse : {false, true}) {
        INFO(shape);
        const int axis = shape[0] == 3 ? 1 : 0;
        const Tensor x = grid(shape);
        CHECK(deviation(cumsum(x, axis, reverse).value(), reference<double>(x, axis, reverse)) <= 1e-13);
      }
  for (const Shape& shape : {Shape{70000, 2}, Shape{5000, 17}, Shape{2, 2, 70000}}) {
    INFO(shape);
    const Tensor x = grid(shape);
    CHECK(deviation(cumsum(x, 1).value(), reference<double>(x, 1, false)) <= 1e-13);
  }
}

TEST_CASE("cumsum of f32 is added up in f64, and the same at any time") {
  const Tensor x = Tensor::full({2, 100000}, 0.1);
  const Tensor y = cumsum(x, 1).value();
  CHECK(y.slice(1, 2).to_vector<float>().back() == static_cast<float>(100000 * static_cast<double>(0.1f)));
  CHECK(same_bits(cumsum(x, 1).value(), y));
  CHECK(row({3e38, 3e38, -3e38}, false, Dtype::f32)[1] == kInf);  // as f32; the sum goes on
  CHECK(row({3e38, 3e38, -3e38}, false, Dtype::f32)[2] == row({3e38}, false, Dtype::f32)[0]);
}

TEST_CASE("cumsum: NaN and infinity stay from where they come, and what lies before is as it was") {
  for (const size_t n : {5, 100, 3000})
    for (const size_t at : {size_t{0}, n / 2, n - 1})
      for (const bool reverse : {false, true}) {
        CAPTURE(n);
        CAPTURE(at);
        std::vector<double> values(n, 1.0);
        values[reverse ? n - 1 - at : at] = kInf;
        std::vector<double> y = row(values, reverse);
        if (reverse) std::reverse(y.begin(), y.end());
        bool right = true;
        for (size_t i = 0; i < n; ++i) right &= y[i] == (i < at ? static_cast<double>(i + 1) : kInf);
        CHECK(right);
      }
  const std::vector<double> y = row({1, kInf, 2, -kInf, 3}), z = row({1, std::nan(""), 2});
  CHECK((y[0] == 1 && y[1] == kInf && y[2] == kInf && std::isnan(y[3]) && std::isnan(y[4])));
  CHECK((z[0] == 1 && std::isnan(z[1]) && std::isnan(z[2])));
}

TEST_CASE("cumsum of nothing, of parts of other memory and of turned tensors") {
  for (const Shape& shape : {Shape{0}, Shape{3, 0, 2}, Shape{0, 4}, Shape{4, 0}})
    for (int axis = 0; axis < shape.rank(); ++axis) CHECK(cumsum(Tensor::zeros(shape), axis).shape() == shape);
  const Tensor x = grid({6, 40}), turned = compute::transpose(x, 0, 1);
  CHECK(same_bits(cumsum(x.slice(2, 5), 1).value(), cumsum(x, 1).value().slice(2, 5)));
  CHECK(deviation(cumsum(turned, 0).value(), compute::transpose(cumsum(x, 1).value(), 0, 1)) <= 1e-14);
}

TEST_CASE("gradients of cumsum") {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{3, 0, 2}, Shape{2, 129}})
    for (int64_t axis = -1; axis < shape.rank(); ++axis)
      for (const bool reverse : {false, true}) {
        INFO(shape, " axis ", axis);
        check_gradients("cumsum", [&](const std::vector<Variable>& v) { return cumsum(v[0], axis, reverse); },
                        {grid(shape)});
      }
  Tape tape;
  const Variable leaf = Variable::leaf(Tensor::zeros({3}, Dtype::f64));
  const Variable y = cumsum(leaf, 0);
  CHECK(tape.bytes_kept() == 0);
  tape.backward(y, Tensor::from({1.0, 10.0, 100.0}, {3}));
  CHECK(leaf.grad().to_vector<double>() == std::vector<double>{111, 110, 100});
}

TEST_CASE("cumsum is the same on both devices") {
  if (!cuda_available()) return;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64})
    for (const Shape& shape : {Shape{5, 3}, Shape{3, 1100}, Shape{2, 70, 3}})
      for (int axis = 0; axis < shape.rank(); ++axis) {
        INFO(shape, " axis ", axis);
        check_both_devices({draw_on_cpu(shape, 3, dtype)},
                           [&](const std::vector<Variable>& x, Device) { return cumsum(x[0], axis); });
      }
}

TEST_CASE("errors of cumsum, word for word") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK(message_of([&] { (void)cumsum(x, 2); }) == "cumsum: axis 2 of a tensor with 2 axes");
  CHECK(message_of([&] { (void)cumsum(x, -3); }) == "cumsum: axis -3 of a tensor with 2 axes");
  CHECK(message_of([&] { (void)cumsum(Tensor::zeros({}), 0); }) == "cumsum: axis 0 of a tensor with 0 axes");
  CHECK(message_of([&] { (void)cumsum(Tensor::arange(3), 0); }) == "cumsum: dtype i32 given, f32 or f64 wanted");
}
