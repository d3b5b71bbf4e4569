#include "linnet/core/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "linnet/core/threads.h"

using namespace linnet;

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST_CASE("philox gives the published numbers") {
  using Four = std::array<uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  uint32_t all = 0xffffffff;
  CHECK(philox({all, all, all, all}, {all, all}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the same seed gives the same numbers for any number of threads") {
  int threads = num_threads();
  manual_seed(3);
  set_num_threads(1);
  auto one = Tensor::normal({100'001}).to_vector<float>();
  manual_seed(3);
  set_num_threads(2);
  CHECK(Tensor::normal({100'001}).to_vector<float>() == one);
  CHECK(Tensor::normal({100'001}).to_vector<float>() != one);
  set_num_threads(threads);
}

TEST_CASE("uniform and normal have their moments") {
  Generator g{7, 1, 0};
  constexpr int64_t n = 200'000;
  auto moments = [](const Tensor& x) {
    double mean = 0, square = 0;
    for (float v : x.to_vector<float>()) mean += v / n, square += double(v) * v / n;
    return std::pair(mean, square - mean * mean);
  };
  auto [mean_u, var_u] = moments(g.uniform({n}, -1, 3));
  CHECK(mean_u == doctest::Approx(1).epsilon(0.01));
  CHECK(var_u == doctest::Approx(16.0 / 12).epsilon(0.01));
  auto [mean_n, var_n] = moments(g.normal({n}, 2, 3));
  CHECK(mean_n == doctest::Approx(2).epsilon(0.02));
  CHECK(var_n == doctest::Approx(9).epsilon(0.02));
}

TEST_CASE("a copied generator goes on alike; streams differ") {
  Generator a{1, 2, 3}, b = a, other{1, 3, 3};
  CHECK(a.uniform() == b.uniform());
  CHECK(a.uniform() != other.uniform());
  for (int i = 0; i < 1000; ++i) CHECK(a.below(7) < 7);
  CHECK_THROWS_AS(a.below(0), Error);
  CHECK(unit_interval(0) > 0);
  CHECK(unit_interval(0xffffffff) < 1);
}

TEST_CASE("what cannot be drawn is refused, and takes no words") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  Generator g{1, 2, 3};
  CHECK_THROWS_WITH_AS(g.uniform({2}, nan, 1), "uniform: low nan given, a finite f32 wanted", Error);
  CHECK_THROWS_WITH_AS(g.uniform({2}, 0, 1e300), "uniform: high 1.0000000000000001e+300 given, a finite f32 wanted",
                       Error);
  CHECK_THROWS_AS(g.uniform({2}, 1, 0), Error);
  CHECK_THROWS_AS(g.uniform({2}, -1e308, 1.7e308, Dtype::f64), Error);
  CHECK_THROWS_WITH_AS(g.normal({2}, 0, infinity), "normal: standard deviation inf given, a finite f32 wanted", Error);
  CHECK_THROWS_AS(g.normal({2}, nan, 1), Error);
  CHECK_THROWS_AS(g.normal({2}, 0, -1), Error);
  CHECK_THROWS_WITH_AS(g.uniform({2}, 0, 1, Dtype::i32), "uniform: dtype i32 given, f32 or f64 wanted", Error);
  CHECK_THROWS_AS(g.normal({int64_t{1} << 59}, 0, 1), Error);  // no memory
  CHECK_THROWS_WITH_AS(g.take(-5), "random: -5 words to take, 0 or more wanted", Error);
  CHECK(g.offset == 3);
  for (float x : g.uniform({100}, -3e38, 3e38).to_vector<float>()) CHECK(std::isfinite(x));
}
