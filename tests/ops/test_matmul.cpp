#include "linnet/ops/matmul.h"

#include <cstring>
#include <limits>
#include <thread>

#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Case {
  Shape a, b;  // before any transposition
};

/// Batches that broadcast either way, odd sizes, empty ones; m, n and k always differ.
std::vector<Case> cases() {
  return {{{3, 4}, {4, 5}},          {{2, 3, 4}, {4, 5}},     {{3, 4}, {2, 4, 5}}, {{2, 3, 4}, {2, 4, 5}},
          {{2, 1, 3, 4}, {5, 4, 2}}, {{1, 3, 4}, {2, 4, 5}},  {{1, 7}, {7, 3}},    {{3, 7}, {7, 1}},
          {{3, 2, 0}, {3, 0, 5}},    {{0, 4}, {4, 5}},        {{2, 0, 4}, {4, 5}}, {{0, 3, 4}, {1, 4, 5}},
          {{37, 19}, {19, 131}},     {{2, 3, 17, 9}, {9, 33}}};
}

Shape swapped(const Shape& s) { return s.with(-1, s.size(-2)).with(-2, s.size(-1)); }

/// y[.., i, j] = sum over l of a[.., i, l] b[.., l, j], in double.
Tensor reference(const Tensor& a_any, const Tensor& b_any) {
  const Tensor a = a_any.to(Device::cpu), b = b_any.to(Device::cpu);
  const Shape stack_a = a.shape().first(a.rank() - 2), stack_b = b.shape().first(b.rank() - 2);
  const Shape stack = broadcast_shapes("test", stack_a, stack_b);
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Shape shape = stack;
  shape.push_back(m), shape.push_back(n);
  Tensor y = Tensor::zeros(shape, Dtype::f64, Device::cpu);
  for (int64_t s = 0; s < stack.numel(); ++s) {
    const double* x = a.data<double>() + broadcast_index(s, stack, stack_a) * m * k;
    const double* w = b.data<double>() + broadcast_index(s, stack, stack_b) * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l) y.mutable_data<double>()[(s * m + i) * n + j] += x[i * k + l] * w[l * n + j];
  }
  return y;
}

}  // namespace

TEST_CASE("matmul: agrees with the triple loop, with every transpose, batch, level and dtype") {
  for_each_level([](const char* level) {
    for (const Case& c : cases())
      for (int transposes = 0; transposes < 4; ++transposes)
        for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
          const bool ta = transposes & 1, tb = transposes & 2;
          INFO(level, " ", c.a.str(), ta ? "^T " : " ", c.b.str(), tb ? "^T " : " ", name(dtype));
          const Tensor a = grid(c.a, 0.013), b = grid(c.b, 0.005);
          const Tensor left = ta ? compute::transpose(a, -2, -1) : a, right = tb ? compute::transpose(b, -2, -1) : b;
          const Tensor y = matmul(left.to(dtype), right.to(dtype), ta, tb).value();
          CHECK(deviation(y, reference(a, b)) <= (dtype == Dtype::f32 ? 1e-5 : 1e-12));
        }
  });
}

TEST_CASE("matmul: gradients of both sides, with every transpose and batch") {
  for (const Case& c : cases())
    for (int transposes = 0; transposes < 4; ++transposes) {
      const bool ta = transposes & 1, tb = transposes & 2;
      INFO(c.a.str(), ta ? "^T " : " ", c.b.str(), tb ? "^T" : "");
      check_gradients("matmul", [=](const std::vector<Variable>& in) { return matmul(in[0], in[1], ta, tb); },
                      {grid(ta ? swapped(c.a) : c.a, 0.013), grid(tb ? swapped(c.b) : c.b, 0.005)},
                      {.full_below = 1024});
    }
}

TEST_CASE("matmul: only wanted gradients are made, and only what they need is kept") {
  const Variable a = Variable::leaf(grid({3, 4})), b = grid({4, 5});
  Tape tape;
  const Variable y = matmul(a, b);
  CHECK(tape.bytes_kept() == 4 * 5 * 8);
  tape.backward(y, Tensor::full({3, 5}, 1, Dtype::f64));
  CHECK(a.grad().defined());
  CHECK_FALSE(b.grad().defined());
}

TEST_CASE("matmul: memory full of NaN never comes through (BL1), and an empty inner axis gives zeros (AG4)") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for_each_level([&](const char* level) {
    for (const Case& c : std::vector<Case>{{{32, 16}, {16, 24}},
                                           {{1, 16}, {16, 24}},
                                           {{32, 16}, {16, 1}},
                                           {{1, 16}, {16, 1}},
                                           {{3, 2, 0}, {3, 0, 3}},
                                           {{5, 0}, {0, 7}}}) {
      INFO(level, " ", c.a.str(), " ", c.b.str());
      const Tensor a = grid(c.a, 0.013), b = grid(c.b, 0.005), expected = reference(a, b);
      for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
        { Tensor dirt = Tensor::full(expected.shape(), kNan, dtype); }  // goes back to the pool, to be handed out again
        CHECK(deviation(matmul(a.to(dtype), b.to(dtype)).value(), expected) <= 1e-5);
      }
    }
  });
}

TEST_CASE("matmul: a zero times infinity is NaN, as it should be") {
  const Tensor a = Tensor::from<float>({0, 1}, {1, 2}), b = Tensor::from<float>({INFINITY, 1}, {2, 1});
  CHECK(std::isnan(matmul(a, b).item()));
}

TEST_CASE("matmul: eight threads at once give the same bits (BL4)") {
  if (on_cuda()) return;  // the emulated device serves one thread
  manual_seed(4);
  const Tensor a = Tensor::normal({48, 40}), b = Tensor::normal({40, 56}), expected = matmul(a, b).value();
  std::array<int, 8> wrong{};
  std::vector<std::thread> workers;
  for (int& count : wrong)
    workers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) count += !same_bits(matmul(a, b).value(), expected);
    });
  for (std::thread& worker : workers) worker.join();
  for (int count : wrong) CHECK(count == 0);
}

TEST_CASE("matmul: f32 products are full f32, never a shorter format (BL10)") {
  std::vector<float> ones(64 * 64, 0.0f);
  for (size_t i = 0; i < 64; ++i) ones[i * 64 + i] = 1;
  const Tensor identity = Tensor::from(ones, {64, 64}), a = Tensor::full({64, 64}, 1 + 1.0 / 4096);
  for (float x : matmul(identity, a).value().to_vector<float>()) CHECK(x == 1.000244140625f);
}

TEST_CASE("matmul: errors") {
  const auto zeros = [](const Shape& s) { return Tensor::zeros(s); };
  CHECK(message_of([&] {
          matmul(zeros({3, 4}), zeros({5, 2}));
        }) == "matmul: a (3, 4) has 4 columns but b (5, 2) has 5 rows");
  CHECK(message_of([&] {
          matmul(zeros({3, 4}), zeros({5, 2}), true, true);
        }) == "matmul: a (3, 4) transposed has 3 columns but b (5, 2) transposed has 2 rows");
  CHECK(message_of([&] {
          matmul(zeros({4}), zeros({4, 2}));
        }) == "matmul: a (4) has no rows and columns; reshape a vector to one row or one column");
  CHECK(message_of([&] {
          matmul(zeros({2, 3, 4}), zeros({3, 4, 2}));
        }) == "matmul: (2) and (3) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK_THROWS_AS(matmul(zeros({3, 4}), Tensor::zeros({4, 2}, Dtype::f64)), Error);
  CHECK_THROWS_AS(matmul(Tensor::zeros({3, 4}, Dtype::i32), Tensor::zeros({4, 2}, Dtype::i32)), Error);
}
