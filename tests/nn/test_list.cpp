#include "linnet/nn/list.h"

#include <doctest/doctest.h>

#include "linnet/nn/linear.h"
#include "support/arrays.h"

using namespace linnet;
using test::message_of;

TEST_CASE("List makes, names, counts and gives its modules, const or not") {
  nn::Model root;
  nn::List<nn::Linear> list(root, "layers", 3, {.in = 2, .out = 2});
  CHECK(list.size() == 3);
  CHECK(list[2].path() == "layers.2");
  int64_t count = 0;
  for (nn::Linear& layer : list) layer.weight.mutable_value().fill(static_cast<double>(++count));
  const nn::List<nn::Linear>& fixed = list;
  for (const nn::Linear& layer : fixed) count += static_cast<int64_t>(layer.weight.value().to_vector<float>()[0]);
  CHECK(count == 3 + 1 + 2 + 3);
  CHECK(fixed[0].weight.same_as(list[0].weight));
  CHECK(root.parameter_count() == 3 * 6);
  static_assert(!std::is_copy_constructible_v<nn::List<nn::Linear>>);
}

TEST_CASE("List takes options of their own, and none") {
  nn::Model root;
  const std::vector<nn::LinearOptions> options{{.in = 2, .out = 3}, {.in = 3, .out = 5, .bias = false}};
  nn::List<nn::Linear> list(root, "layers", options);
  CHECK(list.size() == 2);
  CHECK(list[1].weight.shape() == Shape{5, 3});
  nn::List<nn::Linear> empty(root, "empty", 0, {.in = 2, .out = 2});
  CHECK(empty.size() == 0);
  CHECK(empty.begin() == empty.end());
}

TEST_CASE("List: errors") {
  nn::Model root;
  nn::List<nn::Linear> list(root, "layers", 1, {.in = 2, .out = 2});
  CHECK(message_of([&] { list[1]; }) == "List layers: no item 1 among 1");
  CHECK(message_of([&] { list[-1]; }) == "List layers: no item -1 among 1");
  CHECK(message_of([&] { nn::List<nn::Linear>(root, "other", -2, {.in = 2, .out = 2}); }) ==
        "List other: count -2 is negative");
}
