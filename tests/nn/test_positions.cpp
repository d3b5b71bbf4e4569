#include "linnet/nn/positions.h"

#include <doctest/doctest.h>

#include <limits>

#include "linnet/autograd/tape.h"
#include "linnet/ops/reduce.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using test::message_of;

TEST_CASE("sinusoidal positions: P(t, 2i) = sin(t / 10000^(2i/d)), P(t, 2i+1) the cosine, odd d too") {
  nn::Model root;
  nn::SinusoidalPositions positions(root, "positions", {.dim = 5});
  const Tensor table = positions.table(0, 4, Dtype::f64);
  const Tensor expected = Tensor::from<double>({0,
                                                1,
                                                0,
                                                1,
                                                0,  //
                                                0.84147098480789651,
                                                0.54030230586813972,
                                                0.025116222909773781,
                                                0.99968453791520981,
                                                0.00063095730261542022,  //
                                                0.9092974268256817,
                                                -0.41614683654714239,
                                                0.050216599387465217,
                                                0.99873835069349311,
                                                0.0012619143540422223,  //
                                                0.14112000805986722,
                                                -0.98999249660044546,
                                                0.075285292998888965,
                                                0.99716203530723704,
                                                0.0018928709030918881},
                                               {4, 5});
  CHECK(test::deviation(table, expected) < 1e-14);
  CHECK(test::deviation(nn::SinusoidalPositions(root, "one", {.dim = 1}).table(2, 1, Dtype::f64),
                        Tensor::from<double>({0.9092974268256817}, {1, 1})) < 1e-14);
  CHECK(test::deviation(positions.table(100000, 1, Dtype::f64),
                        Tensor::from<double>({0.035748797972016509, -0.99936080743821245, -0.98328307068545058,
                                              0.18208350530289995, 0.26082952909060242},
                                             {1, 5})) < 1e-10);
}

TEST_CASE("sinusoidal positions are added, from any first step, in a step too") {
  nn::Model root;
  nn::SinusoidalPositions positions(root, "positions", {.dim = 6});
  const Tensor x = test::normal({2, 9, 6});
  const Tensor y = positions(x).value();
  CHECK(positions.parameter_count() == 0);
  for (int64_t t = 0; t < 9; ++t) {
    const Tensor x_t = test::time_step(x, t), y_t = test::time_step(y, t);
    CHECK(test::same_bits(positions.step(x_t, t).value(), y_t));
    CHECK(test::same_bits(positions(x_t.reshape({2, 1, 6}), t).value(), y_t.reshape({2, 1, 6})));
  }
  CHECK(positions(x.to(Dtype::f64)).dtype() == Dtype::f64);
}

TEST_CASE("learned positions are added, from any first step, in a step too") {
  nn::Model root;
  nn::LearnedPositions positions(root, "positions", {.max_time = 9, .dim = 6});
  const Tensor x = test::normal({2, 9, 6});
  const Tensor y = positions(x).value();
  CHECK(test::deviation(positions(Tensor::zeros({1, 9, 6})).value().reshape({9, 6}), positions.weight.value()) == 0);
  for (int64_t t = 0; t < 9; ++t) {
    const Tensor x_t = test::time_step(x, t), y_t = test::time_step(y, t);
    CHECK(test::same_bits(positions.step(x_t, t).value(), y_t));
    CHECK(test::same_bits(positions(x_t.reshape({2, 1, 6}), t).value(), y_t.reshape({2, 1, 6})));
  }
  Tape tape;
  tape.backward(sum(positions(test::normal({2, 3, 6}), 4)));
  const std::vector<float> grad = positions.weight.grad().to_vector<float>();
  for (size_t i = 0; i < grad.size(); ++i) CHECK(grad[i] == (i / 6 >= 4 && i / 6 < 7 ? 2 : 0));
}

TEST_CASE("positions: errors name the layer, past the maximum in a step too") {
  nn::Model root;
  nn::LearnedPositions learned(root, "learned", {.max_time = 32, .dim = 6});
  nn::SinusoidalPositions sinusoidal(root, "sinusoidal", {.dim = 6});
  CHECK(message_of([&] {
          learned(Tensor::zeros({2, 40, 6}));
        }) == "LearnedPositions learned: 40 positions from 0 wanted, but max_time is 32");
  CHECK(message_of([&] {
          learned(Tensor::zeros({2, 3, 6}), 30);
        }) == "LearnedPositions learned: 3 positions from 30 wanted, but max_time is 32");
  CHECK(message_of([&] {
          learned.step(Tensor::zeros({2, 6}), 32);
        }) == "LearnedPositions learned: 1 positions from 32 wanted, but max_time is 32");
  CHECK_THROWS_WITH(learned.step(Tensor::zeros({2, 6}), -1), doctest::Contains("LearnedPositions learned"));
  CHECK(message_of([&] {
          learned(Tensor::zeros({2, 3, 5}));
        }) == "LearnedPositions learned: input (2, 3, 5) is not (batch, time, 6)");
  CHECK(message_of([&] {
          sinusoidal(Tensor::zeros({3, 6}));
        }) == "SinusoidalPositions sinusoidal: input (3, 6) is not (batch, time, 6)");
  CHECK(message_of([&] {
          sinusoidal.step(Tensor::zeros({1, 3, 6}), 0);
        }) == "SinusoidalPositions sinusoidal: input (1, 3, 6) is not (batch, 6), one step");
  CHECK_THROWS_WITH(sinusoidal.step(Tensor::zeros({3, 6}), -1), doctest::Contains("none may be negative"));
  CHECK_THROWS_WITH(sinusoidal(Tensor::zeros({1, 3, 6}, Dtype::i32)), doctest::Contains("positions: "));
  CHECK(message_of([&] { nn::LearnedPositions(root, "bad", {.max_time = 0, .dim = 6}); }) ==
        "LearnedPositions bad: max_time 0 and dim 6, want at least 1");
}

TEST_CASE("positions: those at the end of the integers are refused") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  nn::Model root;
  nn::LearnedPositions learned(root, "learned", {.max_time = 4, .dim = 2});
  nn::SinusoidalPositions sinusoidal(root, "sinusoidal", {.dim = 2});
  const Tensor x = Tensor::zeros({1, 3, 2});
  CHECK_THROWS_WITH(learned(x, most), doctest::Contains("max_time is 4"));
  CHECK_THROWS_WITH(sinusoidal(x, most), doctest::Contains("end beyond 2^63 - 1"));
}
