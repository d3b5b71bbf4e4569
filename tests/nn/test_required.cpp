#include "linnet/nn/required.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "linnet/models/causal_lm.h"

using namespace linnet;
using nn::Required;

namespace {

static_assert(!std::is_default_constructible_v<Required<int64_t>>);
static_assert(!std::is_default_constructible_v<nn::LinearOptions>);
static_assert(!std::is_default_constructible_v<models::StackOptions>);

template <class Options>
concept forgets_out = requires {
  Options{.in = 3};
};
template <class Options>
concept gives_both = requires {
  Options{.in = 3, .out = 4};
};
static_assert(gives_both<nn::LinearOptions>);
static_assert(!forgets_out<nn::LinearOptions>);

template <class Options>
concept forgets_block = requires {
  Options{.layers = 3};
};
static_assert(!forgets_block<models::StackOptions>);

static_assert(!std::is_constructible_v<Required<int64_t>, double>);  // no width is a fraction
static_assert(std::is_constructible_v<Required<double>, int>);

}  // namespace

TEST_CASE("Required reads as what it holds") {
  const nn::LinearOptions options{.in = 3, .out = 4};
  const int64_t product = options.in * options.out;
  CHECK(product == 12);
  const Required<std::string> text = "abc";
  CHECK(text.get() == "abc");
  const Required<double> half = 0.5;
  CHECK(half == 0.5);
}
