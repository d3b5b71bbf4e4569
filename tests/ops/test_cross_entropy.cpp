#include "linnet/ops/cross_entropy.h"

#include <cmath>
#include <limits>

#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

Tensor index_of(const std::vector<int32_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

/// Targets that run through the classes, every fifth one ignored where asked for.
Tensor targets_for(const Shape& logits, bool ignoring) {
  const Shape shape = logits.first(logits.rank() - 1);
  std::vector<int32_t> t;
  for (int64_t i = 0; i < shape.numel(); ++i)
    t.push_back(ignoring && i % 5 == 2 ? -100 : static_cast<int32_t>(i * 3 % logits.back()));
  return Tensor::from(t, shape);
}

struct Result {
  Tensor loss, dlogits;
};
Result run(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options = {}) {
  const Variable x = Variable::leaf(logits);
  Tape tape;
  const Variable loss = cross_entropy(x, targets, options);
  tape.backward(loss, Tensor::full(loss.shape(), 1, loss.dtype(), loss.device()));
  return {loss.value(), x.grad()};
}

/// The formula as the header has it, in double; the losses of all rows.
Tensor reference(const Tensor& x, const Tensor& targets, double smoothing) {
  const int64_t classes = x.size(-1);
  const std::vector<double> all = x.to_vector<double>();
  const std::vector<int32_t> targets_at = targets.to_vector<int32_t>();
  std::vector<double> losses(targets_at.size());
  for (size_t r = 0; r < losses.size(); ++r) {
    const double* row = all.data() + static_cast<int64_t>(r) * classes;
    const int32_t t = targets_at[r];
    if (t < 0) continue;
    double sum = 0, rest = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c]);
    for (int64_t c = 0; c < classes; ++c) rest += (std::log(sum) - row[c]) / static_cast<double>(classes);
    losses[r] = (1 - smoothing) * (std::log(sum) - row[t]) + smoothing * rest;
  }
  return Tensor::from(losses, targets.shape());
}

const std::vector<Shape> kShapes = {{4, 5}, {7}, {2, 3, 4}, {3, 1}, {0, 5}, {37, 129}};

}  // namespace

TEST_CASE("cross_entropy: gradients, with every reduction, smoothed and with ignored targets") {
  for (const Shape& shape : kShapes)
    for (Reduce reduce : {Reduce::none, Reduce::sum, Reduce::mean})
      for (double smoothing : {0.0, 0.1, 1.0})
        for (bool ignoring : {false, true}) {
          INFO(shape.str(), " reduce ", static_cast<int>(reduce), " smoothing ", smoothing, " ignoring ", ignoring);
          const Tensor targets = targets_for(shape, ignoring);
          CrossEntropyOptions options{.reduce = reduce, .label_smoothing = smoothing};
          if (ignoring) options.ignore_index = -100;
          check_gradients("cross_entropy",
                          [&](const std::vector<Variable>& in) { return cross_entropy(in[0], targets, options); },
                          {grid(shape)}, {.full_below = 1024});
        }
}

TEST_CASE("cross_entropy: agrees with the formula at every level") {
  for_each_level([](const char* level) {
    for (const Shape& shape : kShapes)
      for (double smoothing : {0.0, 0.1})
        for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
          INFO(level, " ", shape.str(), " ", smoothing, " ", name(dtype));
          const double tolerance = dtype == Dtype::f32 ? 1e-6 : 1e-14;
          const Tensor x = grid(shape), targets = targets_for(shape, true), want = reference(x, targets, smoothing);
          CrossEntropyOptions options{.reduce = Reduce::none, .ignore_index = -100, .label_smoothing = smoothing};
          const Result got = run(x.to(dtype), targets, options);
          CHECK(deviation(got.loss, want) <= tolerance);
          double sum = 0, count = 0;
          for (double loss : want.to_vector<double>()) sum += loss;
          for (int32_t t : targets.to_vector<int32_t>()) count += t >= 0;
          options.reduce = Reduce::sum;
          CHECK(cross_entropy(x.to(dtype), targets, options).item() == doctest::Approx(sum).epsilon(1e-5));
          options.reduce = Reduce::mean;
          CHECK(cross_entropy(x.to(dtype), targets, options).item() ==
                doctest::Approx(count ? sum / count : 0).epsilon(1e-5));
          const Level now = linnet::level();
          force_level(Level::plain);
          options.reduce = Reduce::none;
          CHECK(deviation(got.dlogits, run(x.to(dtype), targets, options).dlogits) <= tolerance);
          force_level(now);
        }
  });
}

TEST_CASE("cross_entropy: rows of every width that a GPU treats in its own way, and many of them") {
  const auto check = [](const Shape& shape, Dtype dtype, double smoothing) {
    INFO(shape.str(), " ", name(dtype), " ", smoothing);
    const Tensor x = grid(shape, 0.013, dtype), t = targets_for(shape, true);
    const CrossEntropyOptions options{.reduce = Reduce::none, .ignore_index = -100, .label_smoothing = smoothing};
    const Result got = run(x, t, options), want = run(x.to(Device::cpu), t.to(Device::cpu), options);
    const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
    CHECK(deviation(got.loss, want.loss) <= tolerance);
    CHECK(deviation(got.dlogits, want.dlogits) <= tolerance);
  };
  for (int64_t width : {1, 16, 17, 31, 32, 33, 1024, 1025, 5000})
    for (Dtype dtype : {Dtype::f32, Dtype::f64})
      for (double smoothing : {0.0, 0.1}) check({4, width}, dtype, smoothing);
  check({66000, 3}, Dtype::f32, 0.1);
}

TEST_CASE("cross_entropy: extreme logits (LS5)") {
  for_each_level([](const char* level) {
    INFO(level);
    const Result r = run(Tensor::from<float>({1000, 0, -1000}, {1, 3}), index_of({2}, {1}));
    CHECK(r.loss.item() == 2000);
    CHECK(r.dlogits.to_vector<float>() == std::vector<float>{1, 0, -1});
    CHECK(run(Tensor::from<float>({2, 0, -1}, {1, 3}), index_of({0}, {1})).loss.item() ==
          doctest::Approx(.16984602).epsilon(1e-6));
    // A common offset that f32 still represents changes neither loss nor gradient by more than a rounding.
    const Result far = run(Tensor::from<float>({16384 + 2, 16384, 16384 - 1}, {1, 3}), index_of({0}, {1}));
    CHECK(far.loss.item() == doctest::Approx(.16984602).epsilon(1e-6));
    CHECK(deviation(far.dlogits, run(Tensor::from<float>({2, 0, -1}, {1, 3}), index_of({0}, {1})).dlogits) <= 1e-6);
  });
}

TEST_CASE("cross_entropy: classes of -infinity are excluded, smoothing off") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for_each_level([&](const char* level) {
    INFO(level);
    const Result r = run(Tensor::from<float>({-kInf, 1, 1}, {1, 3}), index_of({1}, {1}));
    CHECK(r.loss.item() == doctest::Approx(std::log(2.0)));
    CHECK(r.dlogits.to_vector<float>()[0] == 0);
    const Result none = run(Tensor::from<float>({-kInf, -kInf}, {1, 2}), index_of({1}, {1}));
    CHECK(none.loss.item() == kInf);
    for (float d : none.dlogits.to_vector<float>()) CHECK(std::isfinite(d));
  });
}

TEST_CASE("cross_entropy: all ignored gives 0, with gradient 0 (LS4)") {
  for_each_level([](const char* level) {
    for (Reduce reduce : {Reduce::sum, Reduce::mean}) {
      INFO(level);
      const Result r =
          run(grid({3, 5}, 0.013, Dtype::f32), index_of({7, 7, 7}, {3}), {.reduce = reduce, .ignore_index = 7});
      CHECK(r.loss.item() == 0);
      CHECK(r.dlogits.to_vector<float>() == std::vector<float>(15, 0));
    }
  });
  CHECK(cross_entropy(Tensor::zeros({0, 5}), Tensor::zeros({0}, Dtype::i32)).item() == 0);
}

TEST_CASE("cross_entropy: the number of threads changes no bit") {
  manual_seed(5);
  const Tensor x = Tensor::normal({2001, 130}), targets = targets_for({2001, 130}, true);
  const int before = num_threads();
  set_num_threads(1);
  const Result one = run(x, targets, {.ignore_index = -100});
  set_num_threads(3);
  const Result three = run(x, targets, {.ignore_index = -100});
  set_num_threads(before);
  CHECK(same_bits(one.loss, three.loss));
  CHECK(same_bits(one.dlogits, three.dlogits));
}

TEST_CASE("cross_entropy: errors (LS2)") {
  const Tensor x = Tensor::zeros({3, 5});
  CHECK(message_of([&] {
          cross_entropy(x, index_of({0, -4, 1}, {3}), {.ignore_index = -1});
        }) == "cross_entropy: target -4 at position 1, but there are 5 classes");
  CHECK(message_of([&] {
          cross_entropy(x, index_of({0, 1, 5}, {3}));
        }) == "cross_entropy: target 5 at position 2, but there are 5 classes");
  CHECK(message_of([&] {
          cross_entropy(x, index_of({0, 1}, {2}));
        }) == "cross_entropy: logits (3, 5) want targets (3), not (2)");
  CHECK(message_of([&] { cross_entropy(x, Tensor::zeros({3})); }) == "cross_entropy: targets are f32, i32 wanted");
  CHECK(message_of([&] {
          cross_entropy(x, index_of({0, 1, 2}, {3}), {.label_smoothing = 1.5});
        }) == "cross_entropy: label smoothing 1.5 is not in 0 .. 1");
  CHECK(message_of([&] {
          cross_entropy(Tensor::zeros({3, 5}, Dtype::i32), index_of({0, 1, 2}, {3}));
        }) == "cross_entropy: logits are i32, f32 or f64 wanted");
  CHECK(message_of([&] {
          cross_entropy(Tensor::zeros({1, 0}), index_of({0}, {1}));
        }) == "cross_entropy: target 0 at position 0, but there are 0 classes");
}

TEST_CASE("a row of NaN, or of NaN and -infinity, has a loss of NaN at every level") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::from<double>({nan, nan, nan, -infinity, nan, 1, -infinity, -infinity}, {4, 2});
  for_each_level([&](const char* level) {
    CAPTURE(level);
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      const Tensor targets = Tensor::from<int32_t>({0, 1, 1, 0}, {4});
      const Tensor loss = cross_entropy(x.to(dtype), targets, {.reduce = Reduce::none}).value();
      const std::vector<double> got = loss.to(Dtype::f64).to_vector<double>();
      for (size_t i = 0; i < 3; ++i) CHECK(std::isnan(got[i]));
      CHECK(got[3] == infinity);
      const Tensor excluded = Tensor::full({2, 2}, -infinity, dtype);
      CHECK(cross_entropy(excluded, targets.slice(0, 2)).item() == infinity);  // their mean
    }
  });
  CHECK(
      message_of([&] {
        (void)cross_entropy(Tensor::zeros({1, 2}), Tensor::zeros({1}, Dtype::i32), {.reduce = static_cast<Reduce>(9)});
      }) == "cross_entropy: no reduction 9");
}
