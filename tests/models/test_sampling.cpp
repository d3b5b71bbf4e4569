#include "linnet/models/sampling.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "linnet/ops/sample.h"
#include "support/arrays.h"
#include "support/both_devices.h"

using namespace linnet;
using models::sample_logits;
using models::sample_weights;
using test::message_of;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Row = std::vector<double>;

/// How often each class comes in 20,000 draws.
std::vector<int> counts(const Row& logits, const models::SamplingOptions& options) {
  Generator generator{4, 0, 0};
  std::vector<int> count(logits.size());
  for (int i = 0; i < 20000; ++i) ++count[static_cast<size_t>(sample_logits(std::span(logits), options, generator))];
  return count;
}

}  // namespace

TEST_CASE("weights: a class of weight 0 never comes, the others as often as they weigh (AG14)") {
  const Row weights{0, 10, 3, 0};
  Generator generator{1, 0, 0};
  std::array<int, 4> count{};
  for (int i = 0; i < 1000000; ++i) ++count[static_cast<size_t>(sample_weights(weights, generator))];
  CHECK(count[0] == 0);
  CHECK(count[3] == 0);
  CHECK(static_cast<double>(count[1]) / count[2] == doctest::Approx(10.0 / 3).epsilon(0.01).scale(0));
}

TEST_CASE("weights: the ends of the unit interval fall on classes that can come") {
  const Row weights{0, 10, 3, 0};
  CHECK(sample_weights(weights, 0.0) == 1);
  CHECK(sample_weights(weights, 1e-300) == 1);
  CHECK(sample_weights(weights, 10.0 / 13 - 1e-12) == 1);
  CHECK(sample_weights(weights, 10.0 / 13 + 1e-12) == 2);
  CHECK(sample_weights(weights, std::nextafter(1.0, 0.0)) == 2);
  CHECK(sample_weights(Row{0, 5e-324, 0}, 0.5) == 1);
}

TEST_CASE("weights: all zero, negative, infinite and NaN are errors") {
  CHECK(message_of([] { sample_weights(Row{0, 0, 0}, 0.5); }) == "sample_weights: none of 3 weights is above 0");
  CHECK(message_of([] { sample_weights(Row{}, 0.5); }) == "sample_weights: none of 0 weights is above 0");
  CHECK(message_of([] {
          sample_weights(Row{1, std::nan("")}, 0.5);
        }) == "sample_weights: weight 1 is nan, want a finite number that is not negative");
  CHECK(message_of([] {
          sample_weights(Row{-1, 2}, 0.5);
        }) == "sample_weights: weight 0 is -1, want a finite number that is not negative");
  CHECK_THROWS_AS(sample_weights(Row{kInfinity, 2}, 0.5), Error);
  CHECK(message_of([] { sample_weights(Row{1e308, 1e308}, 0.5); }) == "sample_weights: the sum of 2 weights overflows");
}

TEST_CASE("logits: frequencies follow softmax(logits / temperature)") {
  const Row logits{1, 0, -kInfinity, 2};
  for (const double temperature : {0.5, 1.0, 3.0}) {
    CAPTURE(temperature);
    const std::vector<int> count = counts(logits, {.temperature = temperature});
    double total = 0;
    for (double x : logits) total += std::exp(x / temperature);
    for (size_t i = 0; i < 4; ++i) {
      CHECK(std::abs(count[i] / 20000.0 - std::exp(logits[i] / temperature) / total) < 0.012);
    }
    CHECK(count[2] == 0);
  }
}

TEST_CASE("logits: temperature 0, top_k 1, a tiny top_p and a tiny temperature are all greedy, the first of equals") {
  for (const Row& logits : {Row{1, 3, 2}, Row{5, 5, 1}, Row{-1000, -2000, -3000}, Row{1e30, -1e30, 0}}) {
    const auto best = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    CHECK(counts(logits, {.temperature = 0})[best] == 20000);
    CHECK(counts(logits, {.top_k = 1})[best] == 20000);
    CHECK(counts(logits, {.top_p = 1e-9})[best] == 20000);
  }
  CHECK(counts({1, 3, 2}, {.temperature = 1e-300})[1] == 20000);
}

TEST_CASE("logits: top_k and top_p keep the most likely classes and no more") {
  const Row logits{std::log(0.1), std::log(0.4), std::log(0.2), std::log(0.3)};
  const auto comes = [&](const models::SamplingOptions& options) {
    std::string which;
    const std::vector<int> count = counts(logits, options);
    for (size_t i = 0; i < count.size(); ++i) which += count[i] ? std::to_string(i) : "";
    return which;
  };
  CHECK(comes({}) == "0123");
  CHECK(comes({.top_k = 2}) == "13");
  CHECK(comes({.top_k = 3}) == "123");
  CHECK(comes({.top_k = 9}) == "0123");
  CHECK(comes({.top_p = 0.39}) == "1");
  CHECK(comes({.top_p = 0.5}) == "13");
  CHECK(comes({.top_p = 0.75}) == "123");
  CHECK(comes({.top_p = 0.95}) == "0123");
  CHECK(comes({.top_k = 3, .top_p = 0.7}) == "13");  // of what top_k left: 0.4 + 0.3 of 0.9
  const std::vector<int> count = counts(logits, {.top_k = 2});
  CHECK(std::abs(count[1] / 20000.0 - 4.0 / 7) < 0.012);
}

TEST_CASE("logits: errors") {
  Generator generator;
  const auto draw = [&](const Row& logits, const models::SamplingOptions& options = {}) {
    return message_of([&] { sample_logits(std::span(logits), options, generator); });
  };
  CHECK(draw({1, std::nan(""), 2}) == "sample_logits: logit 1 is nan, want a number");
  CHECK(draw({1, std::nan("")}, {.temperature = 0}) == "sample_logits: logit 1 is nan, want a number");
  CHECK(draw({1, kInfinity}) == "sample_logits: logit 1 is inf, want a number");
  CHECK(draw({-kInfinity, -kInfinity}) == "sample_logits: none of 2 logits is above -infinity");
  CHECK(draw({}) == "sample_logits: none of 0 logits is above -infinity");
  CHECK(draw({1}, {.temperature = -1}) == "sample_logits: temperature -1, want 0 (greedy) or a finite number above");
  CHECK(draw({1}, {.temperature = std::nan("")}) ==
        "sample_logits: temperature nan, want 0 (greedy) or a finite number above");
  CHECK(draw({1}, {.top_k = -1}) == "sample_logits: top_k -1, want 0 (all) or a number of classes");
  CHECK(draw({1}, {.top_p = 0}) == "sample_logits: top_p 0, want above 0 and at most 1");
  CHECK(draw({1}, {.top_p = 1.5}) == "sample_logits: top_p 1.5, want above 0 and at most 1");
  CHECK(message_of([&] { sample_logits(Tensor::zeros({3}), {}, generator); }) ==
        "sample_logits: logits (3) are not (batch, classes)");
}

TEST_CASE("logits: one class a row of a tensor") {
  Generator generator;
  const Tensor logits = Tensor::from<float>({0, 9, 0, 7, 0, 0}, {2, 3});
  const Tensor chosen = sample_logits(logits, {.temperature = 0}, generator);
  CHECK(chosen.dtype() == Dtype::i32);
  CHECK(chosen.to_vector<int32_t>() == std::vector<int32_t>{1, 0});
  CHECK(generator.offset == 0);  // greedy draws nothing
  CHECK(sample_logits(Tensor::zeros({0, 3}), {}, generator).shape() == Shape{0});
}

TEST_CASE("greedy rows of a tensor: the first of equals, -infinity passed over, errors as for one row") {
  Generator generator;
  const models::SamplingOptions greedy{.temperature = 0};
  const auto draw = [&](const std::vector<double>& row) {
    return message_of([&] { (void)sample_logits(Tensor::from(row, {1, 3}), greedy, generator); });
  };
  const Tensor equal = Tensor::from<double>({-kInfinity, 2, 2, 5, 5, -1}, {2, 3});
  CHECK(sample_logits(equal, greedy, generator).to_vector<int32_t>() == std::vector<int32_t>{1, 0});
  Tensor tokens = Tensor::empty({2}, Dtype::i32, Device::cpu);
  models::RowSampler(greedy, generator, 2, 3)(equal, tokens);
  CHECK(tokens.to_vector<int32_t>() == std::vector<int32_t>{1, 0});
  CHECK(draw({1, std::nan(""), 2}) == "sample_logits: logit 1 is nan, want a number");
  CHECK(draw({1, 2, kInfinity}) == "sample_logits: logit 2 is inf, want a number");
  CHECK(draw({-kInfinity, -kInfinity, -kInfinity}) == "sample_logits: none of 3 logits is above -infinity");
}

TEST_CASE("sampling: u must be in [0, 1); messages say what is wrong; a call that fails takes no words") {
  for (const double u : {-0.1, 1.0, std::nan("")})
    CHECK_THROWS_WITH(sample_weights(Row{1, 2}, u), doctest::Contains("want at least 0 and below 1"));
  Generator generator{1, 2, 3};
  CHECK(message_of([&] {
          sample_logits(Tensor::zeros({1, 3}, Dtype::i32), {}, generator);
        }) == "sample_logits: dtype i32 given, f32 or f64 wanted");
  const Tensor half_wrong = Tensor::from<double>({0, 1, kInfinity, 1}, {2, 2});
  CHECK_THROWS_AS(sample_logits(half_wrong, {}, generator), Error);
  CHECK(generator.offset == 3);
}

namespace {

/// Everything that can be asked of a draw, for as many classes.
std::vector<models::SamplingOptions> ways_to_sample(int64_t classes) {
  return {{},
          {.temperature = 0.3},
          {.temperature = 1e-300},
          {.top_k = 1},
          {.temperature = 2, .top_k = (classes + 1) / 2},
          {.top_k = classes},
          {.top_p = 1e-9},
          {.top_p = 0.5},
          {.temperature = 3, .top_p = 0.9},
          {.temperature = 0.7, .top_k = 1 + classes / 3, .top_p = 0.8}};
}

/// The tokens of two draws of a RowSampler, and of one sample_logits, all of the same logits on that device.
std::vector<int32_t> tokens_on(Device device, const Tensor& logits, const models::SamplingOptions& options) {
  const Tensor there = logits.to(device);
  Generator generator{5, 6, 7};
  models::RowSampler sample(options, generator, logits.size(0), logits.size(1));
  Tensor tokens = Tensor::empty({logits.size(0)}, Dtype::i32, Device::cpu);
  std::vector<int32_t> all;
  for (int i = 0; i < 2; ++i) {
    sample(there, tokens);
    for (const int32_t token : tokens.to_vector<int32_t>()) all.push_back(token);
  }
  const Tensor chosen = sample_logits(there, options, generator);
  CHECK(chosen.device() == device);
  for (const int32_t token : chosen.to_vector<int32_t>()) all.push_back(token);
  all.push_back(static_cast<int32_t>(generator.offset));
  return all;
}

void check_same_tokens(const Tensor& logits) {
  for (const models::SamplingOptions& options : ways_to_sample(logits.size(1))) {
    INFO(logits.shape(), ", temperature ", options.temperature, ", top_k ", options.top_k, ", top_p ", options.top_p);
    CHECK(tokens_on(Device::cuda, logits, options) == tokens_on(Device::cpu, logits, options));
  }
}

}  // namespace

TEST_CASE("rows of a tensor are drawn as single rows are, on any device") {
  const std::vector<float> values = test::draw_on_cpu({9, 50}, 2).to_vector<float>();
  const Row logits(values.begin(), values.end());
  for (const models::SamplingOptions& options : ways_to_sample(50)) {
    Generator one{1, 2, 3}, other = one;
    const Tensor chosen = sample_logits(Tensor::from(values, {9, 50}), options, one);
    std::vector<int32_t> wanted;
    for (size_t b = 0; b < 9; ++b)
      wanted.push_back(static_cast<int32_t>(sample_logits(std::span(logits).subspan(50 * b, 50), options, other)));
    CHECK(chosen.to_vector<int32_t>() == wanted);
    CHECK(one.offset == other.offset);
  }
}

TEST_CASE("both devices draw the same tokens") {
  if (!cuda_available()) return;
  for (const int64_t classes : {1, 2, 31, 33, 257, 1100}) check_same_tokens(test::draw_on_cpu({3, classes}, 3));
  for (const int64_t classes : {2, 70}) check_same_tokens(test::draw_on_cpu({3, classes}, 3, Dtype::f64));
}

TEST_CASE("both devices count the first of equal logits as larger, 0 and -0 as equal, and pass -infinity over") {
  if (!cuda_available()) return;
  for (const int64_t classes : {40, 300}) {
    std::vector<double> values;
    for (int64_t i = 0; i < 3 * classes; ++i) values.push_back(static_cast<double>(i * 7 % 5 - 2) / 2);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 ? -0.0 : -kInfinity;
    for (const Dtype dtype : {Dtype::f32, Dtype::f64})
      check_same_tokens(Tensor::from(values, {3, classes}, Device::cpu).to(dtype));
    check_same_tokens(Tensor::full({3, classes}, -1e30, Dtype::f32, Device::cpu));
  }
  check_same_tokens(Tensor::from<double>({1e308, -1e308, 0, -5e-324, 5e-324, -0.0}, {1, 6}, Device::cpu));
}

TEST_CASE("wrong rows of a tensor are errors as single rows are, and a call that fails takes no words") {
  const double nan = std::nan("");
  for (const models::SamplingOptions& options : ways_to_sample(3)) {
    Generator generator{1, 2, 3};
    const auto draw = [&](const std::vector<double>& second) {
      std::vector<double> rows{1, -kInfinity, 2};
      rows.insert(rows.end(), second.begin(), second.end());
      return message_of([&] { (void)sample_logits(Tensor::from(rows, {2, 3}), options, generator); });
    };
    CHECK(draw({1, nan, 2}) == "sample_logits: logit 1 is nan, want a number");
    CHECK(draw({1, 2, kInfinity}) == "sample_logits: logit 2 is inf, want a number");
    CHECK(draw({-kInfinity, nan, kInfinity}) == "sample_logits: logit 1 is nan, want a number");
    CHECK(draw({-kInfinity, -kInfinity, -kInfinity}) == "sample_logits: none of 3 logits is above -infinity");
    CHECK(generator.offset == 3);
  }
  const std::vector<double> one{0.5};
  const auto rows = [&](const Tensor& logits) {
    return message_of([&] { (void)sample_rows(logits, one, {.temperature = 1, .top_k = 0, .top_p = 1}); });
  };
  CHECK(rows(Tensor::zeros({2, 3})) ==
        "sample_rows: logits (2, 3) and 1 numbers given, (batch, classes) and as many as rows wanted");
  CHECK(rows(Tensor::zeros({1, 3}, Dtype::f32, Device::cpu)) == "sample_rows: logits are on cpu, cuda wanted");
}
