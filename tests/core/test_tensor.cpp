#include "linnet/core/tensor.h"

#include <doctest/doctest.h>

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
  a.mutable_data<float>()[0] = 9;
  CHECK(b.shape() == Shape{2, 3});
  CHECK(b.data<float>()[0] == 9);
  CHECK(c.data<float>()[0] == 0);
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
  CHECK_THROWS_AS(a.copy_from(Tensor::zeros({3})), Error);
}

TEST_CASE("a tensor for cuda says that this build has none") {
  CHECK_THROWS_WITH_AS(Tensor::zeros({1}, Dtype::f32, Device::cuda),
                       "cuda: this linnet was built without CUDA; use the device cpu, or build linnet with the CUDA "
                       "Toolkit installed",
                       Error);
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
  CHECK(Shape{int64_t{1} << 62, 0, 4}.numel() == 0);
}
