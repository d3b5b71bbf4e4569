#include "linnet/ops/compare.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/functors.h"
#include "support/arrays.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Bytes = std::vector<uint8_t>;

const std::vector<std::pair<Shape, Shape>> kPairs = {
    {{}, {}},         {{4}, {}},          {{3, 1}, {1, 4}},    {{2, 1, 3}, {5, 1}},
    {{0, 3}, {1, 3}}, {{37, 129}, {129}}, {{37, 1}, {37, 129}}};

template <class T>
void check_comparisons(const Tensor& a, const Tensor& b) {
  const auto check = [&](const std::string& name, const Tensor& y, auto holds) {
    INFO(name, " ", a.shape(), " ", b.shape(), " ", a.dtype());
    CHECK(y.dtype() == Dtype::u8);
    CHECK(y.shape() == broadcast_shapes("test", a.shape(), b.shape()));
    const Tensor as = a.to(Device::cpu), bs = b.to(Device::cpu), ys = y.to(Device::cpu);
    int64_t wrong = 0;
    for (int64_t i = 0; i < y.numel(); ++i)
      wrong += ys.data<uint8_t>()[i] != (holds(as.data<T>()[broadcast_index(i, y.shape(), a.shape())],
                                               bs.data<T>()[broadcast_index(i, y.shape(), b.shape())])
                                             ? 1
                                             : 0);
    CHECK(wrong == 0);
  };
  check("equal", equal(a, b), [](T x, T y) { return x == y; });
  check("not_equal", not_equal(a, b), [](T x, T y) { return x != y; });
  check("less", less(a, b), [](T x, T y) { return x < y; });
  check("less_equal", less_equal(a, b), [](T x, T y) { return x <= y; });
  check("greater", greater(a, b), [](T x, T y) { return x > y; });
  check("greater_equal", greater_equal(a, b), [](T x, T y) { return x >= y; });
}

Tensor stripes(const Shape& shape) {
  Bytes mask(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1 ? 5 : 0;
  return Tensor::from(mask, shape);
}

}  // namespace

TEST_CASE("comparisons of every dtype, with broadcasting, at every level") {
  for_each_level([](const std::string& level_name) {
    INFO("level ", level_name);
    for (const auto& [shape_a, shape_b] : kPairs) {
      const Tensor a = grid(shape_a), b = grid(shape_b);
      check_comparisons<double>(a, b);
      check_comparisons<float>(a.to(Dtype::f32), b.to(Dtype::f32));
      check_comparisons<int32_t>(a.to(Dtype::i32), b.to(Dtype::i32));
    }
  });
}

TEST_CASE("comparisons with NaN, infinities and signed zeros follow C++") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> special = {nan, inf, -inf, 0.0, -0.0, 1, 5e-324};
  const int64_t n = static_cast<int64_t>(special.size());
  const Tensor x = Tensor::from(special, {n, 1}), y = Tensor::from(special, {n});
  check_comparisons<double>(x, y);
  check_comparisons<float>(x.to(Dtype::f32), y.to(Dtype::f32));
}

TEST_CASE("comparisons with a number") {
  const Tensor x = Tensor::from({0.1f, 0.5f, 2.0f}, {3}), i = Tensor::from<int32_t>({1, 2, 3}, {3});
  CHECK(equal(x, 0.1).to_vector<uint8_t>() == Bytes{1, 0, 0});  // 0.1 as f32
  CHECK(not_equal(x, 2).to_vector<uint8_t>() == Bytes{1, 1, 0});
  CHECK(less(x, 0.5).to_vector<uint8_t>() == Bytes{1, 0, 0});
  CHECK(less_equal(x, 0.5).to_vector<uint8_t>() == Bytes{1, 1, 0});
  CHECK(greater(i, 1.5).to_vector<uint8_t>() == Bytes{0, 1, 1});  // 1.5 stays 1.5 beside i32
  CHECK(greater_equal(i, 3).to_vector<uint8_t>() == Bytes{0, 0, 1});
}

TEST_CASE("logical operations on masks") {
  const Tensor a = Tensor::from<uint8_t>({0, 0, 1, 255}, {4}), b = Tensor::from<uint8_t>({0, 7, 0, 255}, {4});
  CHECK(logical_and(a, b).to_vector<uint8_t>() == Bytes{0, 0, 0, 1});
  CHECK(logical_or(a, b).to_vector<uint8_t>() == Bytes{0, 1, 1, 1});
  CHECK(logical_not(a).to_vector<uint8_t>() == Bytes{1, 1, 0, 0});
  CHECK(logical_and(a.reshape({4, 1}), b).shape() == Shape{4, 4});
  CHECK(logical_or(Tensor::zeros({0, 3}, Dtype::u8), Tensor::zeros({3}, Dtype::u8)).shape() == Shape{0, 3});
  CHECK(message_of([&] { logical_and(a, b.to(Dtype::f32)); }) == "logical_and: the mask is f32, u8 wanted");
  CHECK(message_of([&] { logical_or(a, Tensor::zeros({3}, Dtype::u8)); }) ==
        "logical_or: (4) and (3) do not broadcast; aligned at the end, sizes must be equal or 1");
}

TEST_CASE("where chooses element by element, at every level") {
  const std::vector<Shape> masks = {{}, {3, 1}, {2, 3, 4}, {4}, {0, 3, 4}};
  for_each_level([&](const std::string& level_name) {
    for (const Shape& shape : masks) {
      INFO("mask ", shape, ", level ", level_name);
      const Tensor mask = stripes(shape), a = grid({3, 4}, 0.013, Dtype::f32), b = grid({4}, 0.007, Dtype::f32);
      const Tensor y = where(mask, a, b).value();
      CHECK(y.shape() == broadcast_shapes("test", shape, {3, 4}));
      const std::vector<float> as = a.to_vector<float>(), bs = b.to_vector<float>(), ys = y.to_vector<float>();
      const Bytes bytes = mask.to_vector<uint8_t>();
      for (size_t i = 0; i < ys.size(); ++i) {
        const auto place = [&](const Shape& from) {
          return static_cast<size_t>(broadcast_index(static_cast<int64_t>(i), y.shape(), from));
        };
        CHECK(ys[i] == (bytes[place(shape)] ? as[place(a.shape())] : bs[place(b.shape())]));
      }
    }
  });
}

TEST_CASE("gradients of where, broadcasts undone") {
  const std::vector<Shape> masks = {{}, {3, 1}, {2, 3, 4}, {4}, {0, 3, 4}};
  for (const Shape& shape : masks) {
    const Tensor mask = stripes(shape), a = grid({3, 4}), b = grid({4});
    check_gradients("where", [&](const std::vector<Variable>& x) { return where(mask, x[0], x[1]); }, {a, b});
    check_gradients("where", [&](const std::vector<Variable>& x) { return where(mask, x[0], 2.0); }, {a});
    check_gradients("where", [&](const std::vector<Variable>& x) { return where(mask, 2.0, x[0]); }, {b});
  }
  const Tensor mask = stripes({37, 129});
  check_gradients("where", [&](const std::vector<Variable>& x) { return where(mask, x[0], x[1]); },
                  {grid({37, 129}), grid({37, 1})});
}

TEST_CASE("where lets nothing through from the branch not taken") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Variable a = Variable::leaf(Tensor::from({nan, 1.0}, {2}));
  Tape tape;
  const Variable y = where(Tensor::from<uint8_t>({0, 1}, {2}), a, 0.0);
  CHECK(y.value().to_vector<double>() == std::vector<double>{0, 1});
  tape.backward(y, Tensor::from({nan, 3.0}, {2}));
  CHECK(a.grad().to_vector<double>() == std::vector<double>{0, 3});
}

TEST_CASE("argmax finds the first of the largest, at every level") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from({1.0f, 3.0f, 3.0f, -inf, -inf, -inf, 2.0f, nan, nan}, {3, 3});
  for_each_level([&](const std::string& level_name) {
    INFO("level ", level_name);
    CHECK(argmax(x).dtype() == Dtype::i32);
    CHECK(argmax(x).to_vector<int32_t>() == std::vector<int32_t>{1, 0, 1});
    CHECK(argmax(x, 0).to_vector<int32_t>() == std::vector<int32_t>{2, 2, 2});
    CHECK(argmax(Tensor::from({5.0, 1.0, 2.0, 3.0, 7.0, 0.0}, {1, 3, 2}), 1).to_vector<int32_t>() ==
          std::vector<int32_t>{2, 1});
    CHECK(argmax(Tensor::zeros({0, 4})).shape() == Shape{0});
    const Tensor large = grid({5, 37, 3}, 0.013, Dtype::f32), at = argmax(large, -2);
    CHECK(at.shape() == Shape{5, 3});
    const Tensor here = large.to(Device::cpu), found = at.to(Device::cpu);
    for (int64_t o = 0; o < 5; ++o)
      for (int64_t j = 0; j < 3; ++j) {
        int32_t best = 0;
        const float* row = here.data<float>() + o * 37 * 3 + j;
        for (int32_t i = 1; i < 37; ++i)
          if (row[i * 3] > row[best * 3]) best = i;
        CHECK(found.data<int32_t>()[o * 3 + j] == best);
      }
  });
}

TEST_CASE("errors of comparisons, word for word") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4});
  CHECK(message_of([&] { less(a, b); }) ==
        "less: (2, 3) and (4) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK(message_of([&] { equal(a, a.to(Dtype::i32)); }) ==
        "equal: one input is f32 and another i32; convert one with .to(dtype)");
  CHECK(message_of([&] { (void)where(a, a, a); }) == "where: the mask is f32, u8 wanted");
  CHECK(message_of([&] {
          (void)where(stripes({2, 3}), a, b);
        }) == "where: (2, 3) and (4) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK(message_of([&] { argmax(a, 2); }) == "argmax: axis 2 of a tensor with 2 axes");
  CHECK(message_of([&] { argmax(Tensor::zeros({2, 0})); }) == "argmax: (2, 0) has nothing along axis -1");
}
