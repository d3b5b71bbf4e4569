// ONNX's operators that move elements in linnet's terms.
#pragma once
#include <algorithm>

#include "linnet/ops/shape_ops.h"
#include "vectors/onnx.h"

namespace test_support {

inline void add_onnx_shapes(OnnxTable& table) {
  using namespace linnet;
  table["Concat"] = [](const OnnxCase& c) { return std::vector{concat(c.all(), c.integer("axis", 0)).value()}; };
  table["Split"] = [](const OnnxCase& c) {
    const Variable x = c.x(0);
    const int64_t axis = c.integer("axis", 0), parts = static_cast<int64_t>(c.wanted.size());
    std::vector<int64_t> sizes = c.has(1) ? c.numbers(1) : std::vector<int64_t>{};
    const int64_t size = x.size(static_cast<int>(axis)), each = (size + parts - 1) / parts;
    for (int64_t i = 0; sizes.size() < c.wanted.size(); ++i) sizes.push_back(std::min(each, size - i * each));
    std::vector<Tensor> out;
    for (const Variable& part : split(x, sizes, axis)) out.push_back(part.value());
    return out;
  };
  table["Slice"] = [](const OnnxCase& c) {
    Variable x = c.x(0);
    const std::vector<int64_t> starts = c.numbers(1), ends = c.numbers(2), axes = c.numbers(3);
    if (c.has(4))
      for (int64_t step : c.numbers(4)) c.refuse(step != 1, "a step other than 1");
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t size = x.size(static_cast<int>(axes[i]));
      auto within = [size](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size); };
      x = slice(x, axes[i], within(starts[i]), within(ends[i]));
    }
    return std::vector{x.value()};
  };
  table["Reshape"] = [](const OnnxCase& c) {
    const Variable x = c.x(0);
    std::vector<int64_t> sizes = c.numbers(1);
    int64_t known = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0 && !c.integer("allowzero", 0)) sizes[i] = x.size(static_cast<int>(i));
      if (sizes[i] >= 0) known *= sizes[i];
    }
    for (int64_t& size : sizes)
      if (size < 0) size = x.numel() / known;
    return std::vector{reshape(x, Shape(std::span<const int64_t>(sizes))).value()};
  };
  table["Flatten"] = [](const OnnxCase& c) {
    const Variable x = c.x(0);
    const int64_t rows = x.shape().first(static_cast<int>(from_front(c.integer("axis", 1), x.rank()))).numel();
    return std::vector{reshape(x, {rows, -1}).value()};
  };
  table["Squeeze"] = table["Unsqueeze"] = [](const OnnxCase& c) {  // only axes of size 1 come or go
    return std::vector{reshape(c.x(0), c.wanted[0].shape()).value()};
  };
  table["Transpose"] = [](const OnnxCase& c) {
    const Variable x = c.x(0);
    std::vector<int64_t> order = c.attributes.value("perm", std::vector<int64_t>{2, 1, 0});
    c.refuse(order.size() != 3, "a number of axes that this test does not spell out");
    return std::vector{permute(x, {order[0], order[1], order[2]}).value()};
  };
  table["Expand"] = [](const OnnxCase& c) {
    const std::vector<int64_t> sizes = c.numbers(1);
    const Shape wide = broadcast_shapes("Expand", c.in(0).shape(), Shape(std::span<const int64_t>(sizes)));
    return std::vector{broadcast_to(c.x(0), wide).value()};
  };
  table["Tile"] = [](const OnnxCase& c) {
    Variable x = c.x(0);
    const std::vector<int64_t> times = c.numbers(1);
    for (size_t axis = 0; axis < times.size(); ++axis)
      x = concat(std::vector<Variable>(static_cast<size_t>(times[axis]), x), static_cast<int64_t>(axis));
    return std::vector{x.value()};
  };
  table["Gather"] = [](const OnnxCase& c) {
    c.refuse(c.integer("axis", 0) != 0, "an axis other than the first");
    const std::vector<int64_t> index = c.numbers(1);
    c.refuse(*std::min_element(index.begin(), index.end()) < 0, "negative indices, which linnet refuses");
    return std::vector{gather_rows(c.x(0), c.in(1)).value()};
  };
}

}  // namespace test_support
