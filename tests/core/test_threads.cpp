#include "linnet/core/threads.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/core/error.h"
#include "linnet/core/random.h"

using namespace linnet;

namespace {

struct Threads {  // restores the number
  int before = num_threads();
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
};

}  // namespace

TEST_CASE("parallel_for covers every item once") {
  Threads two(2);
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
    parallel_for(n, 1e6, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
    });
    for (auto& count : seen) CHECK(count == 1);
  }
}

TEST_CASE("little work stays on the calling thread, in one part") {
  Threads two(2);
  auto caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(100, 10, [&](int64_t begin, int64_t end) {
    ++calls;
    CHECK(begin == 0);
    CHECK(end == 100);
    CHECK(std::this_thread::get_id() == caller);
  });
  CHECK(calls == 1);
}

TEST_CASE("an exception in a body is thrown again") {
  Threads two(2);
  CHECK_THROWS_WITH_AS(parallel_for(2, 1e9, [](int64_t begin, int64_t) { LINNET_CHECK(begin == 0, "part ", begin); }),
                       "part 1", Error);
  CHECK_THROWS_WITH_AS(set_num_threads(0), "set_num_threads: 0 given, at least 1 wanted", Error);
}

TEST_CASE("the same product twice gives the same bits") {
  Tensor a = Tensor::normal({300, 200}), b = Tensor::normal({200, 250});
  for (int n : {1, 2}) {
    Threads threads(n);
    CHECK(compute::matmul(a, b).to_vector<float>() == compute::matmul(a, b).to_vector<float>());
  }
}

TEST_CASE("a child after fork works, with one thread") {
  Threads two(2);
  Tensor a = Tensor::normal({512, 512});
  Tensor before = compute::matmul(a, a);
  double sum = compute::reduce(compute::Reduction::sum, compute::unary(UnaryOp::Tanh, before), {}, false).item();
  pid_t child = fork();
  if (child == 0) {
    Tensor again = compute::matmul(a, a);
    double mine = compute::reduce(compute::Reduction::sum, compute::unary(UnaryOp::Tanh, again), {}, false).item();
    bool good = std::abs(mine - sum) <= 1e-3 * std::abs(sum) + 1 && num_threads() == 1;
    set_num_threads(2);  // in vain, and no deadlock in the product
    good = good && num_threads() == 1 && compute::matmul(a, a).shape() == a.shape();
    _exit(good ? 0 : 1);
  }
  int status;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a sum over many rows is the same whatever the number of threads") {
  const int before = num_threads();
  const Tensor x = Tensor::normal({3001, 700});
  std::vector<std::vector<float>> sums;
  for (int threads : {1, 2, 5}) {
    set_num_threads(threads);
    sums.push_back(compute::reduce(compute::Reduction::sum, x, std::array<int64_t, 1>{0}, false).to_vector<float>());
  }
  set_num_threads(before);
  CHECK(sums[1] == sums[0]);
  CHECK(sums[2] == sums[0]);
  const std::vector<double> exact =
      compute::reduce(compute::Reduction::sum, x.to(Dtype::f64), std::array<int64_t, 1>{0}, false).to_vector<double>();
  for (size_t i = 0; i < exact.size(); ++i) CHECK(std::abs(sums[0][i] - exact[i]) < 1e-4);
}
