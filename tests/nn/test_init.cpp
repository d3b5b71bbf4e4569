#include "linnet/nn/init.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;
namespace init = nn::init;
using test::message_of;

namespace {

std::vector<float> draw(const nn::Init& kind, const Shape& shape, uint64_t stream = 1) {
  Generator generator{7, stream, 0};
  return kind(shape, generator).to_vector<float>();
}

double largest(const std::vector<float>& values) {
  double most = 0;
  for (float x : values) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

}  // namespace

TEST_CASE("constants") {
  CHECK(draw(init::zeros(), {3}) == std::vector<float>(3, 0));
  CHECK(draw(init::ones(), {3}) == std::vector<float>(3, 1));
  CHECK(draw(init::constant(2.5), {3}) == std::vector<float>(3, 2.5));
}

TEST_CASE("normal has the deviation asked for, uniform fills its bounds") {
  double squares = 0;
  for (float x : draw(init::normal(0.02), {100, 100})) squares += static_cast<double>(x) * x;
  CHECK(std::sqrt(squares / 1e4) == doctest::Approx(0.02).epsilon(0.03).scale(0));
  const double most = largest(draw(init::uniform(0.5), {100, 100}));
  CHECK(most <= 0.5);
  CHECK(most > 0.499);
}

TEST_CASE("Xavier and Kaiming bounds follow the fans") {
  const double xavier = largest(draw(init::xavier_uniform(), {60, 40}));
  CHECK(xavier <= std::sqrt(6.0 / 100));
  CHECK(xavier > 0.995 * std::sqrt(6.0 / 100));
  const double kaiming = largest(draw(init::kaiming_uniform(), {60, 40}));
  CHECK(kaiming <= std::sqrt(6.0 / 40));
  CHECK(kaiming > 0.995 * std::sqrt(6.0 / 40));
  const double kernel = largest(draw(init::kaiming_uniform(1), {60, 10, 4}));  // fan_in = 10 * 4
  CHECK(kernel <= std::sqrt(3.0 / 40));
  CHECK(kernel > 0.995 * std::sqrt(3.0 / 40));
  CHECK(message_of([] { draw(init::xavier_uniform(), {4}); }) ==
        "xavier_uniform: weight (4) has no (out, in, ...) axes");
  CHECK(draw(init::kaiming_uniform(), {3, 0}).empty());
}

TEST_CASE("the same generator gives the same weights, another stream others") {
  CHECK(draw(init::normal(1), {9}) == draw(init::normal(1), {9}));
  CHECK(draw(init::normal(1), {9}) != draw(init::normal(1), {9}, 2));
}
