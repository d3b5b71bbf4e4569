#include "linnet/ops/dropout.h"

#include <cmath>

#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Result {
  Tensor y, dx;
};
Result run(const Tensor& x, double p, const Tensor& dy) {
  const Variable leaf = Variable::leaf(x);
  Tape tape;
  const Variable y = dropout(leaf, p);
  tape.backward(y, dy);
  return {y.value(), leaf.grad()};
}

}  // namespace

TEST_CASE("dropout: gradients under one mask") {
  for (const Shape& shape : shapes_to_try()) {
    INFO(shape.str());
    check_gradients(
        "dropout",
        [](const std::vector<Variable>& in) {
          default_generator() = {9, 2, 3};  // the same mask at every call; blocks of words begin inside the tensor
          return dropout(in[0], 0.4);
        },
        {grid(shape)}, {.full_below = 1024, .training = true});
  }
}

TEST_CASE(
    "dropout: element i is kept where word i is at least p 2^32, at every level and with every number of threads") {
  const Tensor x = grid({100003}, 0.013, Dtype::f32);
  const int before = num_threads();
  for (uint64_t offset : {0, 1, 6, 63})
    for (double p : {0.1, 0.5, 0.999}) {
      std::vector<float> want = x.to_vector<float>();
      for (size_t i = 0; i < want.size(); ++i)
        want[i] = random_word(21, 8, offset + i) >= p * 4294967296.0 ? want[i] * static_cast<float>(1 / (1 - p)) : 0;
      for_each_level([&](const char* level) {
        for (int threads : {1, 3}) {
          INFO(level, " offset ", offset, " p ", p, " threads ", threads);
          set_num_threads(threads);
          default_generator() = {21, 8, offset};
          CHECK(run(x, p, x).y.to_vector<float>() == want);
          CHECK(default_generator().offset == offset + 100003);
          default_generator() = {21, 8, offset};
          CHECK(run(x, p, x).dx.to_vector<float>() == want);
        }
      });
    }
  set_num_threads(before);
}

TEST_CASE("dropout: a GPU takes the mask of the CPU, bit for bit") {
  if (!cuda_available()) return;
  for (const int64_t n : {1, 3, 4, 5, 1023, 70001})
    for (const uint64_t offset : {0, 1, 3, 64})
      for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
        const Tensor x = grid({n}, 0.013, dtype);
        const auto on = [&](Device device) {
          default_generator() = {21, 8, offset};
          const Result r = run(x.to(device), 0.3, x.to(device));
          return std::pair(r.y, r.dx);
        };
        const auto [y, dx] = on(Device::cpu);
        const auto [y_cuda, dx_cuda] = on(Device::cuda);
        CHECK(same_bits(y, y_cuda));
        CHECK(same_bits(dx, dx_cuda));
      }
}

TEST_CASE("dropout: the border lies exactly at p 2^32") {
  const double word = random_word(5, 0, 0);
  const Tensor x = Tensor::full({1}, 1, Dtype::f64);
  for_each_level([&](const char* level) {
    INFO(level);
    manual_seed(5);
    CHECK(run(x, word / 4294967296.0, x).y.item() > 1);
    manual_seed(5);
    CHECK(run(x, (word + 0.5) / 4294967296.0, x).y.item() == 0);
  });
}

TEST_CASE("dropout: p of the elements are dropped, the mean stays") {
  manual_seed(2);
  const Tensor ones = Tensor::full({200000}, 1), y = run(ones, 0.3, ones).y;
  double dropped = 0, sum = 0;
  for (float value : y.to_vector<float>()) dropped += value == 0, sum += value;
  CHECK(std::abs(dropped / 200000 - 0.3) <= 0.005);
  CHECK(std::abs(sum / 200000 - 1) <= 0.01);
}

TEST_CASE("dropout: an input of 0 does not hide whether it was dropped (AG12)") {
  manual_seed(1);
  const Tensor dx = run(Tensor::zeros({1000}), 0.5, Tensor::full({1000}, 1)).dx;
  manual_seed(1);
  const Tensor kept = run(Tensor::full({1000}, 1), 0.5, Tensor::full({1000}, 1)).y;
  CHECK(dx.to_vector<float>() == kept.to_vector<float>());
  for (float d : dx.to_vector<float>()) CHECK((d == 0 || d == 2));
}

TEST_CASE("dropout: p = 1 gives zeros, also of NaN and infinity (AG13)") {
  for (double p : {1.0, 1 - 1e-12}) {
    const Result r = run(Tensor::from<float>({1, NAN, INFINITY}, {3}), p, Tensor::full({3}, 1));
    CHECK(r.y.to_vector<float>() == std::vector<float>(3, 0));
    CHECK(r.dx.to_vector<float>() == std::vector<float>(3, 0));
  }
}

TEST_CASE("dropout: nothing happens, and no words are taken, outside training and for p = 0") {
  manual_seed(1);
  const Variable x = Variable::leaf(grid({5}));
  CHECK(dropout(x, 0.5).same_as(x));
  {
    Tape tape({.training = false});
    CHECK(dropout(x, 0.5).same_as(x));
  }
  Tape tape;
  CHECK(dropout(x, 0).same_as(x));
  CHECK(default_generator().offset == 0);
  CHECK_FALSE(dropout(x, 0.5).same_as(x));
  CHECK(tape.bytes_kept() == 0);
}

TEST_CASE("dropout: errors, in evaluation too") {
  CHECK(message_of([] { dropout(Tensor::zeros({2}), -0.5); }) == "dropout: p -0.5 is not in 0 .. 1");
  CHECK(message_of([] { dropout(Tensor::zeros({2}), 2); }) == "dropout: p 2 is not in 0 .. 1");
  CHECK(message_of([] { dropout(Tensor::zeros({2}), NAN); }) == "dropout: p nan is not in 0 .. 1");
  CHECK(message_of([] { dropout(Tensor::zeros({2}, Dtype::i32), 0.5); }) == "dropout: input is i32, f32 or f64 wanted");
}
