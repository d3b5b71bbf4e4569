#include "linnet/ops/shape_ops.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "support/arrays.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Variables = std::vector<Variable>;
using Ints = std::vector<int32_t>;

Tensor counting(const Shape& shape) { return Tensor::arange(shape.numel()).reshape(shape); }

/// The position of an element, as one index an axis.
std::vector<int64_t> place_of(int64_t at, const Shape& shape) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()));
  for (int d = shape.rank() - 1; d >= 0; --d) place[static_cast<size_t>(d)] = at % shape[d], at /= shape[d];
  return place;
}

int64_t index_of(const std::vector<int64_t>& place, const Shape& shape) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + place[static_cast<size_t>(d)];
  return at;
}

}  // namespace

TEST_CASE("reshape shares memory") {
  const Tensor x = counting({2, 6});
  const Variable y = reshape(x, {3, -1});
  CHECK(y.shape() == Shape{3, 4});
  CHECK(y.value().shares_storage(x));
  CHECK(reshape(x, Shape{12}).value().to_vector<int32_t>() == x.to_vector<int32_t>());
  CHECK(reshape(Tensor::zeros({0, 3}), {3, 0}).shape() == Shape{3, 0});
  CHECK(reshape(Tensor::scalar(2), {1, 1}).shape() == Shape{1, 1});
  for (const Shape& shape : {Shape{3, 5}, Shape{0, 2}, Shape{37, 129}})
    check_gradients("reshape",
                    [&](const Variables& v) {
                      return square(reshape(v[0], Shape{shape[1], shape[0]}));
                    },
                    {grid(shape)});
  CHECK(message_of([&] { (void)reshape(x, {5, 2}); }) == "reshape: (2, 6) has 12 elements but (5, 2) has 10");
  CHECK(message_of([&] {
          (void)reshape(x, {5, -1});
        }) == "reshape: (2, 6) has 12 elements, which do not divide by 5 to fill the -1");
  CHECK(message_of([&] { (void)reshape(x, {-1, -1}); }) == "reshape: more than one size is -1");
}

TEST_CASE("transpose and permute move every element to its place, at every level") {
  for_each_level([](const std::string& level_name) {
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{1, 1, 5}, Shape{3, 0, 2}, Shape{37, 3, 129}}) {
      INFO(shape, ", level ", level_name);
      const Tensor x = grid(shape, 0.013, Dtype::f32);
      const Variable t = transpose(x, 0, -1), p = permute(x, {2, 0, 1});
      CHECK(t.shape() == Shape{shape[2], shape[1], shape[0]});
      CHECK(p.shape() == Shape{shape[2], shape[0], shape[1]});
      int64_t wrong = 0;
      const Tensor xs = x.to(Device::cpu), ts = t.value().to(Device::cpu), ps = p.value().to(Device::cpu);
      for (int64_t i = 0; i < x.numel(); ++i) {
        const std::vector<int64_t> at = place_of(i, shape);
        wrong += ts.data<float>()[index_of({at[2], at[1], at[0]}, t.shape())] != xs.data<float>()[i];
        wrong += ps.data<float>()[index_of({at[2], at[0], at[1]}, p.shape())] != xs.data<float>()[i];
      }
      CHECK(wrong == 0);
    }
  });
  CHECK(transpose(grid({3, 5})).shape() == Shape{5, 3});
  CHECK(permute(Tensor::scalar(1), {}).rank() == 0);
  CHECK(permute(grid({2, 3}), {-1, 0}).shape() == Shape{3, 2});
}

TEST_CASE("gradients of transpose and permute") {
  for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 0, 2}, Shape{5, 7, 129}}) {
    check_gradients("transpose", [](const Variables& x) { return square(transpose(x[0], 0, 2)); }, {grid(shape)});
    check_gradients("transpose", [](const Variables& x) { return square(transpose(x[0])); }, {grid(shape)});
    check_gradients("permute", [](const Variables& x) { return square(permute(x[0], {1, 2, 0})); }, {grid(shape)});
    check_gradients("permute", [](const Variables& x) { return square(permute(x[0], {2, 0, 1})); }, {grid(shape)});
  }
  const Tensor x = grid({2, 3, 4});
  CHECK(message_of([&] { (void)transpose(x, 0, 3); }) == "transpose: axis 3 of a tensor with 3 axes");
  CHECK(message_of([&] { (void)permute(x, {0, 1}); }) == "permute: 2 axes listed for (2, 3, 4), each wanted once");
  CHECK(message_of([&] { (void)permute(x, {0, 1, -2}); }) == "permute: axis -2 of (2, 3, 4) is listed twice");
}

TEST_CASE("slice takes a range of any axis") {
  const Tensor x = counting({3, 4});
  CHECK(slice(x, 0, 1, 3).value().to_vector<int32_t>() == Ints{4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(slice(x, 0, 1, 3).value().shares_storage(x));
  CHECK(slice(x, 1, 1, 3).value().to_vector<int32_t>() == Ints{1, 2, 5, 6, 9, 10});
  CHECK(slice(x, -1, -1).value().to_vector<int32_t>() == Ints{3, 7, 11});
  CHECK(slice(x, 1, 1, -1).value().to_vector<int32_t>() == Ints{1, 2, 5, 6, 9, 10});
  CHECK(slice(x, 1, 2, 2).shape() == Shape{3, 0});
  CHECK(slice(x, 0, 3).shape() == Shape{0, 4});
  CHECK(message_of([&] { (void)slice(x, 1, 2, 5); }) == "slice: 2 to 5 of axis 1 of (3, 4), which has size 4");
  CHECK(message_of([&] { (void)slice(x, 1, 3, 1); }) == "slice: 3 to 1 of axis 1 of (3, 4), which has size 4");
  CHECK(message_of([&] { (void)slice(x, 0, -4); }) == "slice: -4 to 3 of axis 0 of (3, 4), which has size 3");
  CHECK(message_of([&] { (void)slice(x, 2, 0, 1); }) == "slice: axis 2 of a tensor with 2 axes");
}

TEST_CASE("gradients of slice") {
  for (const int64_t axis : {0, 1, -1}) {
    check_gradients("slice", [&](const Variables& x) { return square(slice(x[0], axis, 1, 3)); }, {grid({3, 4, 5})});
    check_gradients("slice", [&](const Variables& x) { return square(slice(x[0], axis, 2, 2)); }, {grid({3, 4, 5})});
    check_gradients("slice", [&](const Variables& x) { return square(slice(x[0], axis, 0)); }, {grid({3, 0, 5})});
    check_gradients("slice", [&](const Variables& x) { return slice(x[0], axis, 0, 2) * slice(x[0], axis, -2); },
                    {grid({37, 3, 43})});
  }
}

TEST_CASE("concat and stack join, split takes apart") {
  const Tensor a = counting({2, 3}), b = Tensor::from<int32_t>({-1, -2}, {2, 1}),
               none = Tensor::zeros({2, 0}, Dtype::i32);
  const Variable joined = concat({a, b, none}, 1);
  CHECK(joined.value().to_vector<int32_t>() == Ints{0, 1, 2, -1, 3, 4, 5, -2});
  CHECK(concat({a, a}, 0).value().to_vector<int32_t>() == Ints{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
  CHECK(stack({a, a}, 0).shape() == Shape{2, 2, 3});
  CHECK(stack({a, a}, 1).value().to_vector<int32_t>() == Ints{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(stack({a, a}, -1).value().to_vector<int32_t>() == Ints{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(stack({Tensor::scalar(1), Tensor::scalar(2)}, 0).value().to_vector<float>() == std::vector<float>{1, 2});
  const std::vector<Variable> parts = split(joined, {3, 0, 1}, -1);
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].value().to_vector<int32_t>() == a.to_vector<int32_t>());
  CHECK(parts[1].shape() == Shape{2, 0});
  CHECK(parts[2].value().to_vector<int32_t>() == b.to_vector<int32_t>());
  CHECK(split(counting({6, 2}), 3, 0)[1].value().to_vector<int32_t>() == Ints{4, 5, 6, 7});
}

TEST_CASE("gradients of concat, stack and split") {
  for (const int64_t axis : {0, 1, 2}) {
    const auto join = [&](const Variables& x) { return square(concat({x[0], x[1], x[0]}, axis)); };
    check_gradients("concat", join, {grid({2, 3, 4}), grid(Shape{2, 3, 4}.with(static_cast<int>(axis), 5), 0.007)});
    check_gradients("concat", join, {grid({2, 3, 4}), grid(Shape{2, 3, 4}.with(static_cast<int>(axis), 0), 0.007)});
    check_gradients("concat", join, {grid({17, 3, 41}), grid({17, 3, 41}, 0.007)});
    check_gradients("concat",
                    [&](const Variables& x) {
                      return square(stack({x[0], x[1]}, axis));
                    },
                    {grid({3, 5}), grid({3, 5}, 0.007)});
    check_gradients("split",
                    [&](const Variables& x) {
                      const std::vector<Variable> p = split(x[0], 3, axis);
                      return p[0] * p[2];  // no gradient comes to p[1]
                    },
                    {grid({3, 6, 9})});
    check_gradients("split",
                    [&](const Variables& x) {
                      const std::vector<Variable> p = split(x[0], {1, 0, 2}, axis);
                      return concat({p[2], square(p[0]), p[1]}, axis);
                    },
                    {grid({3, 3, 3})});
  }
  check_gradients("split", [](const Variables& x) { return square(split(x[0], 2, 1)[1]); }, {grid({37, 58})});
  check_gradients("split", [](const Variables& x) { return square(split(x[0], 2, 1)[1]); }, {grid({0, 4})});
  const Tensor constant = grid({2, 3}, 0.007);
  check_gradients("concat", [&](const Variables& x) { return concat({constant, x[0]}, 0); }, {grid({2, 3})});
}

TEST_CASE("errors of concat, stack and split, word for word") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({2, 4});
  CHECK(message_of([&] {
          (void)concat({a, b}, 0);
        }) == "concat: (2, 3) and (2, 4) given, which may differ in axis 0 only");
  CHECK(message_of([&] {
          (void)concat({a, Tensor::zeros({3})}, 1);
        }) == "concat: (2, 3) and (3) given, which may differ in axis 1 only");
  CHECK(message_of([&] { (void)concat({}, 0); }) == "concat: no parts given, at least one wanted");
  CHECK(message_of([&] {
          (void)concat({a, a.to(Dtype::i32)}, 0);
        }) == "concat: one input is f32 and another i32; convert one with .to(dtype)");
  CHECK(message_of([&] { (void)stack({a, b}, 0); }) == "stack: (2, 3) and (2, 4) given, equal shapes wanted");
  CHECK(message_of([&] { (void)stack({}, 0); }) == "stack: no parts given, at least one wanted");
  CHECK(message_of([&] {
          (void)split(a, {1, 1}, 1);
        }) == "split: the sizes add up to 2 but axis 1 of (2, 3) has size 3");
  CHECK(message_of([&] { (void)split(a, {4, -1}, 1); }) == "split: size -1 is negative");
  CHECK(message_of([&] { (void)split(a, 2, 1); }) ==
        "split: axis 1 of (2, 3) has size 3, which does not divide into 2 parts");
}

TEST_CASE("gather_rows takes rows and adds their gradients") {
  const Tensor table = grid({5, 3}, 0.013, Dtype::f32), index = Tensor::from<int32_t>({4, 0, 4, 2}, {2, 2});
  for_each_level([&](const std::string& level_name) {
    INFO("level ", level_name);
    const Variable rows = gather_rows(table, index);
    CHECK(rows.shape() == Shape{2, 2, 3});
    const std::vector<float> from = table.to_vector<float>(), to = rows.value().to_vector<float>();
    const std::vector<size_t> wanted = {4, 0, 4, 2};
    for (size_t i = 0; i < 12; ++i) CHECK(to[i] == from[wanted[i / 3] * 3 + i % 3]);
  });
  const auto gather = [](const Tensor& at) {
    return [at](const Variables& x) { return square(gather_rows(x[0], at)); };
  };
  check_gradients("gather_rows", gather(index), {grid({5, 3})});
  check_gradients("gather_rows", gather(Tensor::zeros({0}, Dtype::i32)), {grid({5, 3})});
  check_gradients("gather_rows", gather(Tensor::scalar(3, Dtype::i32)), {grid({5})});
  check_gradients("gather_rows", gather(Tensor::full({129}, 36, Dtype::i32)), {grid({37, 11})});
  CHECK(message_of([&] {
          (void)gather_rows(table, Tensor::from<int32_t>({1, 100}, {2}));
        }) == "gather_rows: index 100 at position 1, but there are 5 rows");
  CHECK(message_of([&] { (void)gather_rows(table, Tensor::from<int32_t>({-1}, {1})); }) ==
        "gather_rows: index -1 at position 0, but there are 5 rows");
  CHECK(message_of([&] { (void)gather_rows(table, table); }) == "gather_rows: the indices are f32, i32 wanted");
}

TEST_CASE("broadcast_to repeats and sums back") {
  const Tensor x = Tensor::from({1.0f, 2.0f}, {2, 1});
  CHECK(broadcast_to(x, {2, 2, 3}).value().to_vector<float>() ==
        std::vector<float>{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2});
  CHECK(broadcast_to(x, {2, 0}).shape() == Shape{2, 0});
  const std::pair<Shape, Shape> pairs[] = {
      {{}, {2, 3}}, {{2, 1}, {4, 2, 3}}, {{2, 1}, {2, 0}}, {{3}, {3}}, {{37, 1}, {37, 129}}};
  for (const auto& [from, to] : pairs)
    check_gradients("broadcast_to", [&, target = to](const Variables& v) { return square(broadcast_to(v[0], target)); },
                    {grid(from)});
  CHECK(message_of([&] {
          (void)broadcast_to(x, {3, 3});
        }) == "broadcast_to: (2, 1) and (3, 3) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK(message_of([&] { (void)broadcast_to(x, {1, 3}); }) == "broadcast_to: (2, 1) cannot be repeated to (1, 3)");
  CHECK(message_of([&] { (void)broadcast_to(x, {2}); }) == "broadcast_to: (2, 1) cannot be repeated to (2)");
}

TEST_CASE("sizes whose sum wraps, parts beyond number and axes beyond eight are errors of the op") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Tensor x = Tensor::zeros({4, 2}), deep = Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(message_of([&] { (void)split(x, {most, most, 2, 4}, 0); }) == "split: the sizes add up to more than 2^63 - 1");
  CHECK(message_of([&] { (void)split(Tensor::zeros({0}), int64_t{1} << 40, 0); }) ==
        "split: 1099511627776 parts wanted, at most 1048576 are made");
  CHECK(split(Tensor::zeros({0}), 3, 0).size() == 3);
  CHECK(message_of([&] { (void)stack({deep}, 0); }) ==
        "stack: parts (1, 1, 1, 1, 1, 1, 1, 1) given, at most 7 axes wanted");
  CHECK(message_of([&] { (void)gather_rows(x, deep.to(Dtype::i32)); }) ==
        "gather_rows: index (1, 1, 1, 1, 1, 1, 1, 1) into rows of (4, 2) given, together more than 8 axes");
  const Variable wide = Tensor::zeros({int64_t{1} << 59, 0});
  CHECK_THROWS_AS(concat({wide, wide}, 0), Error);
  CHECK(std::isfinite(var(x, {}, false, std::numeric_limits<int64_t>::min()).item()));
}
