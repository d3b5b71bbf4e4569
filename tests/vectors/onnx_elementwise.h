// ONNX's elementwise operators, comparisons and reductions in linnet's terms.
#pragma once
#include <algorithm>
#include <limits>

#include "linnet/autograd/tape.h"
#include "linnet/ops/compare.h"
#include "linnet/ops/cumsum.h"
#include "linnet/ops/dropout.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "linnet/ops/shape_ops.h"
#include "vectors/onnx.h"

namespace test_support {

inline void add_onnx_elementwise(OnnxTable& table) {
  using namespace linnet;
  auto one = [&table](const char* op, Variable (*f)(const Variable&)) {
    table[op] = [f](const OnnxCase& c) { return std::vector{f(c.x(0)).value()}; };
  };
  one("Abs", linnet::abs);
  one("Exp", linnet::exp);
  one("Log", linnet::log);
  one("Neg", linnet::neg);
  one("Relu", linnet::relu);
  one("Sigmoid", linnet::sigmoid);
  one("Softplus", linnet::softplus);
  one("Sqrt", linnet::sqrt);
  one("Tanh", linnet::tanh);
  one("Reciprocal", [](const Variable& x) { return 1.0 / x; });
  table["Gelu"] = [](const OnnxCase& c) {
    const bool approximate = c.attributes.value("approximate", "none") == "tanh";
    return std::vector{(approximate ? gelu_tanh(c.x(0)) : gelu(c.x(0))).value()};
  };
  table["Elu"] = [](const OnnxCase& c) { return std::vector{elu(c.x(0), c.number("alpha", 1)).value()}; };
  table["Selu"] = [](const OnnxCase& c) {
    return std::vector{(elu(c.x(0), c.number("alpha", 1.67326)) * c.number("gamma", 1.0507)).value()};
  };
  table["LeakyRelu"] = [](const OnnxCase& c) {
    return std::vector{(relu(c.x(0)) - relu(-c.x(0)) * c.number("alpha", 0.01)).value()};
  };
  table["Swish"] = [](const OnnxCase& c) {
    return std::vector{(c.x(0) * sigmoid(c.x(0) * c.number("alpha", 1))).value()};
  };
  table["Clip"] = [](const OnnxCase& c) {
    const double infinity = std::numeric_limits<double>::infinity();
    const double low = c.has(1) ? c.in(1).item() : -infinity, high = c.has(2) ? c.in(2).item() : infinity;
    c.refuse(low > high, "a lower bound above the upper one, which clamp refuses");
    return std::vector{clamp(c.x(0), low, high).value()};
  };
  table["Cast"] = [](const OnnxCase& c) { return std::vector{c.in(0).to(c.wanted[0].dtype())}; };
  table["Dropout"] = [](const OnnxCase& c) {
    if (!c.has(2) || c.in(2).item() == 0) return std::vector{dropout(c.x(0), c.number("ratio", 0.5)).value()};
    c.refuse(c.in(1).item() != 0, "the random numbers of another generator");
    Tape tape;
    return std::vector{dropout(c.x(0), 0).value()};
  };

  auto two = [&table](const char* op, Variable (*f)(const Variable&, const Variable&)) {
    table[op] = [f](const OnnxCase& c) { return std::vector{f(c.x(0), c.x(1)).value()}; };
  };
  two("Add", linnet::add);
  two("Sub", linnet::sub);
  two("Mul", linnet::mul);
  two("Div", linnet::div);
  table["Pow"] = [](const OnnxCase& c) {
    const Variable base = c.x(0);
    return std::vector{pow(base, c.in(1).to(base.dtype())).value()};
  };

  auto fold = [&table](const char* op, Variable (*f)(const Variable&, const Variable&), bool divide) {
    table[op] = [f, divide](const OnnxCase& c) {
      const std::vector<Variable> parts = c.all();
      Variable y = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) y = f(y, parts[i]);
      return std::vector{(divide ? y / static_cast<double>(parts.size()) : y).value()};
    };
  };
  fold("Max", linnet::maximum, false);
  fold("Min", linnet::minimum, false);
  fold("Sum", linnet::add, false);
  fold("Mean", linnet::add, true);

  auto compare = [&table](const char* op, Tensor (*f)(const Variable&, const Variable&)) {
    table[op] = [f](const OnnxCase& c) { return std::vector{f(c.in(0), c.in(1))}; };
  };
  compare("Equal", linnet::equal);
  compare("Greater", linnet::greater);
  compare("Less", linnet::less);
  table["Where"] = [](const OnnxCase& c) { return std::vector{where(c.in(0), c.x(1), c.x(2)).value()}; };

  auto arg = [&table](const char* op, bool smallest) {
    table[op] = [smallest](const OnnxCase& c) {
      c.refuse(c.integer("select_last_index", 0) != 0, "the last of equals, where linnet gives the first");
      Tensor y = argmax(smallest ? -c.x(0) : c.x(0), c.integer("axis", 0));
      return std::vector{c.integer("keepdims", 1) ? y.reshape(c.wanted[0].shape()) : y};
    };
  };
  arg("ArgMax", false);
  arg("ArgMin", true);
}

inline void add_onnx_reductions(OnnxTable& table) {
  using namespace linnet;
  using Reduction = Variable (*)(const Variable&, std::initializer_list<int64_t>, bool);
  // The axes stand in a file, so they are reduced one after the other: sums, extremes, means and log-sums allow that.
  static auto over_axes = [](const OnnxCase& c, Reduction f, Variable x) {
    std::vector<int64_t> axes = c.has(1) ? c.numbers(1) : std::vector<int64_t>{};
    if (axes.empty() && c.integer("noop_with_empty_axes", 0)) return x;
    if (axes.empty())
      for (int i = 0; i < x.rank(); ++i) axes.push_back(i);
    for (int64_t axis : axes) x = f(x, {axis}, true);
    if (c.integer("keepdims", 1)) return x;
    for (int64_t& axis : axes) axis = from_front(axis, x.rank());
    std::sort(axes.rbegin(), axes.rend());
    Shape shape = x.shape();
    for (int64_t axis : axes) shape = shape.without(static_cast<int>(axis));
    return reshape(x, shape);
  };
  auto reduction = [&table](const char* op, Reduction f, Variable (*before)(const Variable&) = nullptr,
                            Variable(*after)(const Variable&) = nullptr) {
    table[op] = [=](const OnnxCase& c) {
      Variable y = over_axes(c, f, before ? before(c.x(0)) : c.x(0));
      return std::vector{(after ? after(y) : y).value()};
    };
  };
  reduction("ReduceSum", linnet::sum);
  reduction("ReduceMean", linnet::mean);
  reduction("ReduceLogSumExp", linnet::logsumexp);
  reduction("ReduceSumSquare", linnet::sum, linnet::square);
  reduction("ReduceL2", linnet::sum, linnet::square, linnet::sqrt);
  auto extreme = [&table](const char* op, Reduction f) {
    table[op] = [f](const OnnxCase& c) {
      c.refuse(c.in(0).numel() == 0, "the extreme of nothing, which linnet refuses");
      return std::vector{over_axes(c, f, c.x(0)).value()};
    };
  };
  extreme("ReduceMax", linnet::max);
  extreme("ReduceMin", linnet::min);
  table["CumSum"] = [](const OnnxCase& c) {
    c.refuse(c.integer("exclusive", 0) != 0, "sums without the element itself");
    return std::vector{cumsum(c.x(0), c.numbers(1).at(0), c.integer("reverse", 0) != 0).value()};
  };
}

}  // namespace test_support
