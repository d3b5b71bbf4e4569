#include "linnet/core/compute.h"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "linnet/core/dispatch.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"

using namespace linnet;
using compute::Reduction;

namespace {

template <class F>
void on_every_level(F&& f) {
  for (Level l : {Level::plain, Level::portable, Level::avx2, Level::avx512}) {
    if (l > best_level()) continue;
    CAPTURE(name(l));
    force_level(l);
    f();
    unforce_level();
  }
}

void check_close(const Tensor& a, const Tensor& b, double tolerance) {
  REQUIRE(a.shape() == b.shape());
  Tensor x = a.to(Device::cpu).to(Dtype::f64), y = b.to(Device::cpu).to(Dtype::f64);
  double worst = 0, largest = 1;
  for (int64_t i = 0; i < x.numel(); ++i) {
    worst = std::max(worst, std::abs(x.data<double>()[i] - y.data<double>()[i]));
    largest = std::max(largest, std::abs(y.data<double>()[i]));
  }
  CHECK(worst <= tolerance * largest);
}

Tensor reversed(int64_t n) {
  std::vector<float> x;
  for (int64_t i = n; i-- > 0;) x.push_back(static_cast<float>(i));
  return Tensor::from(x, {n});
}

}  // namespace

TEST_CASE("gemm: all transposes, leading dimensions wider than the rows, alpha and beta") {
  constexpr int64_t m = 5, n = 7, k = 3;
  on_every_level([&] {
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (double beta : {0.0, 1.0, 0.5}) {
          int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 4;
          Tensor a = Tensor::normal({8, lda}), b = Tensor::normal({8, ldb}), c = Tensor::normal({m, ldc}),
                 old = c.clone();
          if (beta == 0) c.fill(NAN);  // beta = 0 never reads C
          compute::gemm(default_device(), ta, tb, m, n, k, 2.0f, a.data<float>(), lda, b.data<float>(), ldb,
                        static_cast<float>(beta), c.mutable_data<float>(), ldc);
          a = a.to(Device::cpu), b = b.to(Device::cpu), c = c.to(Device::cpu), old = old.to(Device::cpu);
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              double dot = 0;
              for (int64_t l = 0; l < k; ++l)
                dot += double(a.data<float>()[ta ? l * lda + i : i * lda + l]) *
                       double(b.data<float>()[tb ? j * ldb + l : l * ldb + j]);
              double right = 2 * dot + (beta == 0 ? 0 : beta * old.data<float>()[i * ldc + j]);
              CHECK(c.data<float>()[i * ldc + j] == doctest::Approx(right).epsilon(1e-5));
            }
        }
  });
}

TEST_CASE("a product never lets old memory through: one row, one column, an empty inner size") {
  on_every_level([&] {
    for (auto [m, n, k] : {std::array<int64_t, 3>{1, 9, 4}, {9, 1, 4}, {1, 1, 33}, {2, 3, 0}, {40, 40, 40}}) {
      { Tensor junk = Tensor::full({m, n}, NAN); }  // the pool gives this block again
      Tensor y = compute::matmul(Tensor::full({m, k}, 1), Tensor::full({k, n}, 1));
      CHECK(y.to_vector<float>() == std::vector<float>(static_cast<size_t>(m * n), static_cast<float>(k)));
    }
  });
}

TEST_CASE("matmul broadcasts its leading axes") {
  Tensor a = Tensor::normal({2, 1, 3, 4}), b = Tensor::normal({5, 4, 6});
  Tensor y = compute::matmul(a, b);
  REQUIRE(y.shape() == Shape{2, 5, 3, 6});
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 5; ++j)
      check_close(y.slice(i, i + 1).reshape({5, 3, 6}).slice(j, j + 1).reshape({3, 6}),
                  compute::matmul(a.slice(i, i + 1).reshape({3, 4}), b.slice(j, j + 1).reshape({4, 6})), 1e-6);
  CHECK_THROWS_WITH_AS(compute::matmul(a, Tensor::zeros({3, 6})),
                       "matmul: (2, 1, 3, 4) and (3, 6) given; the inner sizes 4 and 3 must be equal", Error);
  CHECK_THROWS_AS(compute::matmul(a, Tensor::zeros({4})), Error);
  CHECK_THROWS_AS(compute::matmul(a, Tensor::zeros({4, 6}, Dtype::f64)), Error);
}

TEST_CASE("concurrent products from eight threads are bit-equal") {
  if (test::on_cuda()) return;  // the emulated device serves one thread
  Tensor a = Tensor::normal({64, 64}), right = compute::matmul(a, a);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 60; ++i)
        if (compute::matmul(a, a).to_vector<float>() != right.to_vector<float>()) ++wrong;
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("reductions over any axes, on every level") {
  manual_seed(1);  // 4,200 of them nearly cancel: the error is that of the partial sums, not of the result
  Tensor x = Tensor::normal({3, 4, 5, 70});
  auto plain_sum = [&](std::vector<bool> reduced) {  // straightforward, in f64
    Shape shape;
    for (int d = 0; d < 4; ++d)
      if (!reduced[d]) shape.push_back(x.shape()[d]);
    const std::vector<float> from = x.to_vector<float>();
    std::vector<double> y(static_cast<size_t>(shape.numel()));
    for (int64_t i = 0; i < x.numel(); ++i) {
      int64_t rest = i, at = 0, step = 1;
      for (int d = 3; d >= 0; --d) {
        if (!reduced[d]) at += rest % x.shape()[d] * step, step *= x.shape()[d];
        rest /= x.shape()[d];
      }
      y[static_cast<size_t>(at)] += from[static_cast<size_t>(i)];
    }
    return Tensor::from(y, shape);
  };
  on_every_level([&] {
    for (int mask = 1; mask < 16; ++mask) {
      std::vector<int64_t> axes;
      std::vector<bool> reduced;
      for (int d = 0; d < 4; ++d) {
        reduced.push_back(mask >> d & 1);
        if (reduced.back()) axes.push_back(d % 2 ? d : d - 4);
      }
      check_close(compute::reduce(Reduction::sum, x, axes, false), plain_sum(reduced), 1e-5);
    }
    CHECK(compute::reduce(Reduction::max, reversed(100), {}, false).item() == 99);
    CHECK(compute::reduce(Reduction::min, reversed(100), {}, false).item() == 0);
    CHECK(std::isnan(compute::reduce(Reduction::max, Tensor::from<float>({1, NAN, 2}, {3}), {}, false).item()));
    CHECK(compute::argmax(Tensor::from<float>({1, 3, 3, 0}, {4}), 0).item() == 1);
  });
  CHECK(compute::reduce(Reduction::sum, Tensor::zeros({2, 0}), std::vector<int64_t>{1}, false).to_vector<float>() ==
        std::vector<float>{0, 0});
  CHECK_THROWS_AS(compute::reduce(Reduction::max, Tensor::zeros({2, 0}), std::vector<int64_t>{1}, false), Error);
  CHECK_THROWS_AS(compute::reduce(Reduction::sum, x, std::vector<int64_t>{0, 0}, false), Error);
}

TEST_CASE("long sums stay accurate: sixteen million ones and a pairwise tail") {
  int64_t n = (1 << 24) + 3;
  CHECK(compute::reduce(Reduction::sum, Tensor::full({n}, 1), {}, false).item() ==
        doctest::Approx(double(n)).epsilon(1e-7));
  CHECK(compute::reduce(Reduction::sum, Tensor::full({n, 1}, 0.1), std::vector<int64_t>{0}, false).item() ==
        doctest::Approx(0.1 * double(n)).epsilon(1e-6));
  CHECK(compute::reduce(Reduction::sum, Tensor::full({1 << 22, 2}, 0.1), std::vector<int64_t>{0}, false)
            .to_vector<float>()[1] == doctest::Approx(0.1 * (1 << 22)).epsilon(1e-6));
}

TEST_CASE("sum_to undoes a broadcast") {
  Tensor x = Tensor::full({2, 3, 4}, 1);
  CHECK(compute::sum_to(x, {3, 1}).to_vector<float>() == std::vector<float>{8, 8, 8});
  CHECK(compute::sum_to(x, {}).item() == 24);
  CHECK(compute::sum_to(x, {2, 3, 4}).shares_storage(x));
  CHECK(compute::broadcast_to(Tensor::arange(3, Dtype::f32).reshape({3, 1}), {2, 3, 2}).to_vector<float>() ==
        std::vector<float>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
}

TEST_CASE("broadcasting in every pattern of sizes") {
  on_every_level([&] {
    for (int mask = 0; mask < 64; ++mask) {
      Shape a{2, 3, 5}, b{2, 3, 5};
      for (int d = 0; d < 3; ++d) {
        if (mask >> d & 1) a.set(d, 1);
        if (mask >> (d + 3) & 1) b.set(d, 1);
      }
      Tensor x = Tensor::normal(a), y = Tensor::normal(b), z = compute::sub(x, y).to(Device::cpu);
      x = x.to(Device::cpu), y = y.to(Device::cpu);
      for (int64_t i = 0; i < z.numel(); ++i) {
        int64_t at[3] = {i / (z.shape()[1] * z.shape()[2]), i / z.shape()[2] % z.shape()[1], i % z.shape()[2]};
        auto read = [&](const Tensor& t) {
          int64_t offset = 0;
          for (int d = 0; d < 3; ++d) offset = offset * t.shape()[d] + (t.shape()[d] == 1 ? 0 : at[d]);
          return t.data<float>()[offset];
        };
        CHECK(z.data<float>()[i] == read(x) - read(y));
      }
    }
  });
  CHECK_THROWS_WITH_AS(compute::add(Tensor::zeros({2, 3}), Tensor::zeros({2})),
                       "add: (2, 3) and (2) do not broadcast; aligned at the end, sizes must be equal or 1", Error);
}

TEST_CASE("permute: rows become columns, in every place of a larger tensor") {
  for (const Shape& shape : {Shape{8, 8}, Shape{33, 65}, Shape{7, 40}, Shape{3, 31, 32}, Shape{2, 9, 3, 70}})
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      for (int a = 0; a < shape.rank(); ++a)
        for (int b = a; b < shape.rank(); ++b) {
          INFO(shape.str(), " ", a, " ", b);
          std::vector<double> values(static_cast<size_t>(shape.numel()));
          for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
          const Tensor x = Tensor::from(values, shape).to(dtype);
          std::vector<int> order;
          for (int d = 0; d < shape.rank(); ++d)
            if (d != a) order.push_back(d);
          order.insert(order.begin() + b, a);
          const std::vector<double> y = compute::permute(x, order).to(Dtype::f64).to_vector<double>();
          std::vector<double> want;  // counting in the order of y
          std::vector<int64_t> at(order.size(), 0);
          for (size_t i = 0; i < values.size(); ++i) {
            int64_t place = 0, step = 1;
            for (int d = shape.rank() - 1; d >= 0; step *= shape[d--])
              for (size_t k = 0; k < order.size(); ++k)
                if (order[k] == d) place += at[k] * step;
            want.push_back(static_cast<double>(place));
            for (size_t k = order.size(); k-- > 0;) {
              if (++at[k] < shape[order[k]]) break;
              at[k] = 0;
            }
          }
          CHECK(y == want);
        }
}

TEST_CASE("permute, concat and slice move every dtype") {
  for (Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::i32, Dtype::u8}) {
    Tensor x = Tensor::arange(24, dtype).reshape({2, 3, 4});
    int order[] = {2, 0, 1};
    Tensor y = compute::permute(x, order);
    CHECK(y.shape() == Shape{4, 2, 3});
    CHECK(y.slice(1, 2).to(Dtype::f32).to_vector<float>() == std::vector<float>{1, 5, 9, 13, 17, 21});
    CHECK(compute::concat(std::vector{x, x}, 1).shape() == Shape{2, 6, 4});
    Tensor s = compute::slice(compute::concat(std::vector{x, x}, 1), 1, 3, 6);
    CHECK(s.to(Dtype::f32).to_vector<float>() == x.to(Dtype::f32).to_vector<float>());
  }
  CHECK_THROWS_AS(compute::concat(std::vector{Tensor::zeros({2, 3}), Tensor::zeros({3, 3})}, 1), Error);
  CHECK_THROWS_AS(compute::slice(Tensor::zeros({3}), 0, 2, 4), Error);
}

TEST_CASE("rows of a table: gather, scatter-add, and indices out of range") {
  Tensor table = Tensor::arange(6, Dtype::f32).reshape({3, 2}), index = Tensor::from<int32_t>({2, 0, 2}, {3});
  CHECK(compute::gather_rows("embedding", table, index).to_vector<float>() == std::vector<float>{4, 5, 0, 1, 4, 5});
  Tensor grad = Tensor::zeros({3, 2});
  compute::scatter_add_rows_inplace(grad, index, Tensor::full({3, 2}, 1));
  CHECK(grad.to_vector<float>() == std::vector<float>{1, 1, 0, 0, 2, 2});
  CHECK_THROWS_WITH_AS(compute::gather_rows("embedding", table, Tensor::from<int32_t>({0, 3}, {2})),
                       "embedding: index 3 at position 1, but there are 3 rows", Error);
  CHECK_THROWS_AS(compute::gather_rows("embedding", table, Tensor::from<int32_t>({-1}, {1})), Error);
}

TEST_CASE("results do not depend on the number of threads") {
  int before = num_threads();
  Tensor x = Tensor::normal({1000, 300});
  set_num_threads(1);
  auto one = compute::unary(UnaryOp::Gelu, x).to_vector<float>();
  double square = compute::sum_of_squares(x);
  set_num_threads(2);
  CHECK(compute::unary(UnaryOp::Gelu, x).to_vector<float>() == one);
  CHECK(compute::sum_of_squares(x) == square);
  set_num_threads(before);
}
