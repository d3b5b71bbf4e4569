#include "linnet/core/tensor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <sstream>

using namespace linnet;

TEST_CASE("factories") {
  CHECK(Tensor::zeros({2, 3}).to_vector<float>() == std::vector<float>(6, 0));
  CHECK(Tensor::full({2}, 2.5, Dtype::f64).to_vector<double>() == std::vector<double>{2.5, 2.5});
  CHECK(Tensor::arange(3).to_vector<int32_t>() == std::vector<int32_t>{0, 1, 2});
  CHECK(Tensor::scalar(7).item() == 7);
  CHECK(Tensor::from<uint8_t>({1, 0}, {2}).dtype() == Dtype::u8);
  CHECK_THROWS_WITH_AS(Tensor::from<float>({1, 2}, {3}), "tensor: 2 values for shape (3), which has 3", Error);
}

TEST_CASE("copies and reshapes share memory, clones do not") {
  Tensor a = Tensor::arange(6, Dtype::f32);
  Tensor b = a.reshape({2, -1}), c = a.clone();
  a.copy_from(Tensor::full({6}, 9));
  CHECK(b.shape() == Shape{2, 3});
  CHECK(b.to_vector<float>()[0] == 9);
  CHECK(c.to_vector<float>()[0] == 0);
  CHECK_THROWS_WITH_AS(a.reshape({4, 2}), "reshape: (6) has 6 elements but (4, 2) has 8", Error);
  CHECK_THROWS_AS(a.reshape({-1, 4}), Error);
  CHECK_THROWS_AS(a.reshape({-1, -1}), Error);
}

TEST_CASE("slices of the first axis") {
  Tensor a = Tensor::arange(6, Dtype::f32).reshape({3, 2});
  CHECK(a.slice(1, 3).to_vector<float>() == std::vector<float>{2, 3, 4, 5});
  CHECK(a.slice(1, 1).numel() == 0);
  CHECK(a.slice(1, 3).slice(1, 2).to_vector<float>() == std::vector<float>{4, 5});
  CHECK_THROWS_WITH_AS(a.slice(2, 4), "slice: rows 2 to 4 of (3, 2)", Error);
}

TEST_CASE("every writable access raises the version") {
  Tensor a = Tensor::zeros({2});
  uint64_t before = a.storage()->version();
  (void)a.data<float>();
  CHECK(a.storage()->version() == before);
  a.mutable_data<float>();
  CHECK(a.storage()->version() > before);
}

TEST_CASE("wrong accesses are errors") {
  Tensor a = Tensor::zeros({2});
  CHECK_THROWS_WITH_AS(a.data<double>(), "tensor: data of f32 read as f64", Error);
  CHECK_THROWS_WITH_AS(a.item(), "item: shape (2) given, one element wanted", Error);
  CHECK_THROWS_AS(Tensor().device(), Error);
  CHECK_THROWS_AS(Tensor().raw(), Error);
  CHECK_THROWS_AS(Tensor().mutable_raw(), Error);
  CHECK_THROWS_AS(a.copy_from(Tensor::zeros({3})), Error);
}

TEST_CASE("conversion between dtypes and printing") {
  Tensor a = Tensor::from<float>({1.5f, -2.0f}, {2});
  CHECK(a.to(Dtype::f64).to_vector<double>() == std::vector<double>{1.5, -2.0});
  CHECK(a.to(Dtype::i32).to_vector<int32_t>() == std::vector<int32_t>{1, -2});
  CHECK(a.to(Dtype::f32).shares_storage(a));
  std::ostringstream out;
  out << a << ' ' << Tensor();
  CHECK(out.str() == "tensor f32 (2) [1.5, -2] tensor (undefined)");
}

TEST_CASE("shapes that are too large or negative are errors") {
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 62}), Error);
  CHECK_THROWS_AS((Shape{2, -1}), Error);
  CHECK_THROWS_AS((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), Error);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{int64_t{1} << 50, 0, 4}.numel() == 0);
  CHECK_THROWS_WITH_AS((Shape{0, int64_t{1} << 40, int64_t{1} << 40}),
                       "shape: (0, 1099511627776, 1099511627776) has too many elements", Error);
  Shape s{2, 3};
  CHECK_THROWS_WITH_AS(s.set(0, -2), "shape: size -2 of axis 0 is negative", Error);
  CHECK_THROWS_AS(s.with(-1, -2), Error);
  CHECK_THROWS_AS(s.push_back(int64_t{1} << 60), Error);
  CHECK_THROWS_WITH_AS(s[2], "shape: axis 2 of (2, 3), which has 2 axes; size(-1) is the last one's size", Error);
  CHECK_THROWS_AS(s[-1], Error);
  CHECK(s == Shape{2, 3});
  s.set(-1, 4);
  CHECK(s == Shape{2, 4});
}

TEST_CASE("integers are cut towards zero, and what does not fit is an error") {
  const double nan = std::nan(""), large = 1e20;
  CHECK(Tensor::from<float>({-1.9f, 1.9f}, {2}).to(Dtype::i32).to_vector<int32_t>() == std::vector<int32_t>{-1, 1});
  CHECK(Tensor::from<float>({-0.5f, 255.9f}, {2}).to(Dtype::u8).to_vector<uint8_t>() == std::vector<uint8_t>{0, 255});
  CHECK(Tensor::full({1}, 2147483647.5, Dtype::i32).item() == 2147483647);
  CHECK_THROWS_WITH_AS(Tensor::full({1}, nan, Dtype::i32), "fill: the value nan does not fit i32", Error);
  CHECK_THROWS_WITH_AS(Tensor::full({1}, large, Dtype::i32), "fill: the value 1e+20 does not fit i32", Error);
  CHECK_THROWS_WITH_AS(Tensor::scalar(-1, Dtype::u8), "fill: the value -1 does not fit u8", Error);
  CHECK_THROWS_WITH_AS(Tensor::scalar(nan).to(Dtype::u8), "to: the value nan does not fit u8", Error);
  CHECK_THROWS_WITH_AS(Tensor::scalar(300, Dtype::i32).to(Dtype::u8), "to: the value 300 does not fit u8", Error);
  CHECK_THROWS_WITH_AS(Tensor::arange(257, Dtype::u8), "arange: the value 256 does not fit u8", Error);
}

TEST_CASE("sizes beyond every memory are errors") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  CHECK_THROWS_WITH_AS(Tensor::empty({int64_t{1} << 59}, Dtype::f32, Device::cpu),
                       "storage: no memory for 2305843009213693952 bytes on cpu", Error);
  CHECK_THROWS_AS(Tensor::empty({most}), Error);
  CHECK_THROWS_AS(Tensor::empty({int64_t{1} << 40, int64_t{1} << 40}), Error);
}
