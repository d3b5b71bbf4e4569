// Products A B^T with few rows of A: the loops of core/few_rows.h, against the sums as one writes them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;

namespace {

constexpr int64_t kBehind = 3;  // columns behind those of each matrix, which nothing may touch

template <class T>
Tensor product(int64_t m, int64_t n, int64_t k, const Tensor& a, const Tensor& b, T beta, const Tensor& before) {
  Tensor c = before.clone();
  compute::gemm<T>(Device::cpu, false, true, m, n, k, T(0.5), a.data<T>(), k + kBehind, b.data<T>(), k + kBehind, beta,
                   c.mutable_data<T>(), n + kBehind);
  return c;
}

template <class T>
void check_product(int64_t m, int64_t n, int64_t k, T beta) {
  const Tensor a = test::grid({m, k + kBehind}, 0.013, dtype_of<T>),
               b = test::grid({n, k + kBehind}, 0.007, dtype_of<T>);
  const Tensor before = Tensor::full({m, n + kBehind}, beta == 0 ? std::nan("") : 3, dtype_of<T>);
  const Tensor c = product<T>(m, n, k, a, b, beta, before);
  double worst = 0;
  bool kept = true;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n + kBehind; ++j) {
      const T got = c.data<T>()[i * (n + kBehind) + j];
      if (j >= n) {
        kept &= beta == 0 ? std::isnan(got) : got == 3;
        continue;
      }
      double sum = beta == 0 ? 0 : 3 * static_cast<double>(beta);
      for (int64_t l = 0; l < k; ++l)
        sum += 0.5 * static_cast<double>(a.data<T>()[i * (k + kBehind) + l]) * b.data<T>()[j * (k + kBehind) + l];
      const double off = std::abs(got - sum);
      worst = std::isnan(off) ? 1e9 : std::max(worst, off);
    }
  }
  CHECK(kept);
  CHECK(worst < (sizeof(T) == 4 ? 2e-6 : 1e-14) * static_cast<double>(k + 1));
}

}  // namespace

TEST_CASE("few rows: every remainder of rows, columns and depth, at every level") {
  test::for_each_level([](const char* level) {
    for (const int64_t m : {1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 33, 48, 49, 64, 65, 100, 129}) {
      for (const int64_t n : {1, 5, 8, 33, 67}) {
        for (const int64_t k : {0, 1, 3, 17, 64, 100, 259}) {
          INFO(level, " m ", m, " n ", n, " k ", k);
          check_product<float>(m, n, k, 0);
          check_product<float>(m, n, k, 1);
          check_product<double>(m, n, k, 0);
          check_product<double>(m, n, k, 0.25);
        }
      }
    }
  });
}

TEST_CASE("few rows: the same bits for every number of threads") {
  const int before = num_threads();
  for (const int64_t m : {1, 7, 64}) {
    const int64_t n = 2000, k = 300;
    const Tensor a = test::grid({m, k + kBehind}, 0.013, Dtype::f32),
                 b = test::grid({n, k + kBehind}, 0.007, Dtype::f32);
    const Tensor nothing = Tensor::zeros({m, n + kBehind});
    set_num_threads(1);
    const Tensor one = product<float>(m, n, k, a, b, 0, nothing);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      CHECK(test::same_bits(product<float>(m, n, k, a, b, 0, nothing), one));
    }
  }
  set_num_threads(before);
}
