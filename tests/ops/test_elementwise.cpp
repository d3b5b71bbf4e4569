#include "linnet/ops/elementwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "linnet/autograd/tape.h"
#include "linnet/core/functors.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Real = long double;

struct UnaryCase {
  std::string name;
  std::function<Variable(const Variable&)> f;
  std::function<Real(Real)> reference;
  double absolute = 0;  // what 1 + a number near -1 loses, in units of epsilon times |x|
};

Real normal_distribution(Real x) { return 0.5L * std::erfc(-x / std::sqrt(2.0L)); }

const std::vector<UnaryCase>& unary_cases() {
  static const std::vector<UnaryCase> cases = {
      {"neg", [](const Variable& x) { return -x; }, [](Real x) { return -x; }},
      {"abs", [](const Variable& x) { return abs(x); }, [](Real x) { return std::abs(x); }},
      {"exp", [](const Variable& x) { return exp(x); }, [](Real x) { return std::exp(x); }},
      {"log", [](const Variable& x) { return log(x); }, [](Real x) { return std::log(x); }},
      {"sqrt", [](const Variable& x) { return sqrt(x); }, [](Real x) { return std::sqrt(x); }},
      {"square", [](const Variable& x) { return square(x); }, [](Real x) { return x * x; }},
      {"tanh", [](const Variable& x) { return tanh(x); }, [](Real x) { return std::tanh(x); }},
      {"sigmoid", [](const Variable& x) { return sigmoid(x); }, [](Real x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", [](const Variable& x) { return relu(x); }, [](Real x) { return x < 0 ? 0 : x; }},
      {"gelu", [](const Variable& x) { return gelu(x); }, [](Real x) { return x * normal_distribution(x); }, 2},
      {"gelu_tanh", [](const Variable& x) { return gelu_tanh(x); },
       [](Real x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x))); },
       4},
      {"elu1", [](const Variable& x) { return elu1(x); }, [](Real x) { return x >= 0 ? x + 1 : std::exp(x); }},
      {"softplus", [](const Variable& x) { return softplus(x); },
       [](Real x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }},
      {"elu", [](const Variable& x) { return elu(x, 0.75); }, [](Real x) { return x > 0 ? x : 0.75L * std::expm1(x); }},
      {"clamp", [](const Variable& x) { return clamp(x, -1, 0.5); },
       [](Real x) { return x < -1     ? -1
                           : x > 0.5L ? 0.5L
                                      : x; }},
      {"pow_scalar", [](const Variable& x) { return pow(x, 3); }, [](Real x) { return std::pow(x, 3.0L); }},
      {"pow_scalar", [](const Variable& x) { return pow(x, 2.5); }, [](Real x) { return std::pow(x, 2.5L); }},
      {"pow_scalar", [](const Variable& x) { return pow(x, -1.5); }, [](Real x) { return std::pow(x, -1.5L); }},
      {"affine", [](const Variable& x) { return x * -0.75; }, [](Real x) { return x * -0.75L; }},
      {"affine", [](const Variable& x) { return 0.5 - x; }, [](Real x) { return 0.5L - x; }},
  };
  return cases;
}

struct BinaryCase {
  std::string name;
  std::function<Variable(const Variable&, const Variable&)> f;
  std::function<Real(Real, Real)> reference;
  bool positive = false;
};

const std::vector<BinaryCase>& binary_cases() {
  using V = const Variable&;
  static const std::vector<BinaryCase> cases = {
      {"add", [](V a, V b) { return a + b; }, [](Real a, Real b) { return a + b; }},
      {"sub", [](V a, V b) { return a - b; }, [](Real a, Real b) { return a - b; }},
      {"mul", [](V a, V b) { return a * b; }, [](Real a, Real b) { return a * b; }},
      {"div", [](V a, V b) { return a / b; }, [](Real a, Real b) { return a / b; }, true},
      {"pow", [](V a, V b) { return pow(a, b); }, [](Real a, Real b) { return std::pow(a, b); }, true},
      {"maximum", [](V a, V b) { return maximum(a, b); }, [](Real a, Real b) { return std::fmax(a, b); }},
      {"minimum", [](V a, V b) { return minimum(a, b); }, [](Real a, Real b) { return std::fmin(a, b); }},
  };
  return cases;
}

const std::vector<std::pair<Shape, Shape>>& shape_pairs() {
  static const std::vector<std::pair<Shape, Shape>> pairs = {
      {{}, {}},           {{}, {3}},           {{4}, {1}},       {{3, 4}, {4}},
      {{3, 1}, {1, 4}},   {{2, 1, 3}, {5, 1}}, {{0, 3}, {1, 3}}, {{2, 0, 3}, {2, 1, 1}},
      {{37, 129}, {129}}, {{37, 1}, {37, 129}}};
  return pairs;
}

/// Inputs for f32 or f64: the whole range of the ops, and what is special.
template <class T>
std::vector<T> probes() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x = {T(0),
                      T(-0.0),
                      Limits::infinity(),
                      -Limits::infinity(),
                      Limits::quiet_NaN(),
                      Limits::denorm_min(),
                      -Limits::denorm_min(),
                      Limits::min(),
                      -Limits::min(),
                      Limits::epsilon(),
                      -Limits::epsilon(),
                      T(1),
                      T(-1),
                      T(0.5),
                      T(-0.5),
                      T(100),
                      T(-100),
                      T(1000),
                      T(-1000)};
  for (int i = -1999; i <= 1999; i += 3) x.push_back(T(i) / T(100));
  for (int i = -30; i <= 30; ++i) x.push_back(std::ldexp(T(i % 2 ? 1.37 : -1.37), i));
  return x;
}

template <class T>
void check_unary_values(const std::string& level_name, double ulps) {
  const std::vector<T> inputs = probes<T>();
  const Tensor x = Tensor::from(inputs, {static_cast<int64_t>(inputs.size())});
  for (const UnaryCase& op : unary_cases()) {
    const std::vector<T> y = op.f(x).value().template to_vector<T>();
    for (size_t i = 0; i < inputs.size(); ++i) {
      INFO(op.name, " at ", inputs[i], ", level ", level_name);
      const Real wanted = op.reference(inputs[i]);
      if (op.absolute > 0 && std::isfinite(wanted)) {
        const double allowed =
            op.absolute * std::numeric_limits<T>::epsilon() * std::max<double>(std::abs(inputs[i]), 1e-30);
        if (std::abs(static_cast<double>(y[i] - wanted)) <= allowed) continue;
      }
      CHECK(distance_in_ulps(y[i], wanted) <= ulps);
      if (wanted == 0) CHECK(std::signbit(y[i]) == std::signbit(static_cast<T>(wanted)));
    }
  }
}

Tensor grad_of(const std::function<Variable(const Variable&)>& f, const Tensor& x) {
  Variable leaf = Variable::leaf(x);
  Tape tape;
  Variable y = f(leaf);
  tape.backward(y, Tensor::full(y.shape(), 1, y.dtype()));
  return leaf.grad();
}

}  // namespace

TEST_CASE("every row of the functor list has an op and a case here") {
  std::set<std::string> unary, binary;
  for (const UnaryCase& op : unary_cases()) unary.insert(op.name);
  for (const BinaryCase& op : binary_cases()) binary.insert(op.name);
#define LINNET_ROW(Functor, name, ...) CHECK(unary.count(#name) == 1);
  LINNET_UNARY_OPS(LINNET_ROW)
#undef LINNET_ROW
#define LINNET_ROW(Functor, name) CHECK(binary.count(#name) == 1);
  LINNET_BINARY_OPS(LINNET_ROW)
#undef LINNET_ROW
}

TEST_CASE("elementwise values are those of <cmath>, special ones too, at every level") {
  for_each_level([](const std::string& level_name) {
    check_unary_values<float>(level_name, 4);
    check_unary_values<double>(level_name, 4);
  });
}

TEST_CASE("two inputs broadcast as a plain loop over indices does, at every level") {
  for_each_level([](const std::string& level_name) {
    for (const BinaryCase& op : binary_cases()) {
      for (const auto& [shape_a, shape_b] : shape_pairs()) {
        INFO(op.name, " ", shape_a, " ", shape_b, ", level ", level_name);
        const auto values = op.positive ? positive_grid : grid;
        const Tensor a = values(shape_a, 0.013, Dtype::f32), b = values(shape_b, 0.007, Dtype::f32);
        const Tensor y = op.f(a, b).value();
        CHECK(y.shape() == broadcast_shapes("test", shape_a, shape_b));
        const std::vector<float> as = a.to_vector<float>(), bs = b.to_vector<float>(), ys = y.to_vector<float>();
        double worst = 0;
        for (size_t i = 0; i < ys.size(); ++i) {
          const auto place = [&](const Shape& shape) {
            return static_cast<size_t>(broadcast_index(static_cast<int64_t>(i), y.shape(), shape));
          };
          worst = std::max(worst, distance_in_ulps(ys[i], op.reference(as[place(shape_a)], bs[place(shape_b)])));
        }
        CHECK(worst <= 2);
      }
    }
  });
}

TEST_CASE("two inputs with NaN, infinities and signed zeros give what C++ gives, at every level") {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> special = {0.0f,
                                      -0.0f,
                                      1.0f,
                                      -2.5f,
                                      3.0f,
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      Limits::quiet_NaN(),
                                      Limits::denorm_min(),
                                      Limits::max()};
  const int64_t n = static_cast<int64_t>(special.size());
  const Tensor a = Tensor::from(special, {n, 1}), b = Tensor::from(special, {n});
  const std::vector<float (*)(float, float)> references = {
      [](float x, float y) { return x + y; },
      [](float x, float y) { return x - y; },
      [](float x, float y) { return x * y; },
      [](float x, float y) { return x / y; },
      [](float x, float y) { return std::pow(x, y); },
      [](float x, float y) {
        return std::isnan(x) ? x : std::isnan(y) ? y : x > y ? x : y;
      },
      [](float x, float y) {
        return std::isnan(x) ? x : std::isnan(y) ? y : x < y ? x : y;
      }};
  REQUIRE(references.size() == binary_cases().size());
  for_each_level([&](const std::string& level_name) {
    for (size_t k = 0; k < references.size(); ++k) {
      const std::vector<float> y = binary_cases()[k].f(a, b).value().to_vector<float>();
      for (size_t i = 0; i < y.size(); ++i) {
        const float x0 = special[i / special.size()], x1 = special[i % special.size()], wanted = references[k](x0, x1);
        INFO(binary_cases()[k].name, " of ", x0, " and ", x1, ", level ", level_name);
        CHECK(distance_in_ulps(y[i], wanted) <= 1);
        if (wanted != 0 || k > 4) continue;  // either zero may win a tie
        CHECK(std::signbit(y[i]) == std::signbit(wanted));
      }
    }
  });
}

TEST_CASE("f32 slopes at every level agree with the level plain") {
  if (on_cuda()) return;  // which is none; check_gradients and tests/parity look at its slopes
  const Tensor x = positive_grid({1003}, 0.013, Dtype::f32), other = positive_grid({1003}, 0.007, Dtype::f32);
  std::vector<std::vector<float>> plain;
  for_each_level([&](const std::string& level_name) {
    size_t k = 0;
    const auto compare = [&](const std::string& name, const std::function<Variable(const Variable&)>& f) {
      const std::vector<float> slope = grad_of(f, x).to_vector<float>();
      if (level_name == "plain") plain.push_back(slope);
      INFO(name, ", level ", level_name);
      double worst = 0;
      for (size_t i = 0; i < slope.size(); ++i)
        worst = std::max<double>(worst, std::abs(slope[i] - plain[k][i]) / std::max(1.0f, std::abs(plain[k][i])));
      CHECK(worst <= 1e-6);
      ++k;
    };
    for (const UnaryCase& op : unary_cases()) compare(op.name, op.f);
    for (const BinaryCase& op : binary_cases()) {
      compare(op.name, [&](const Variable& v) { return op.f(v, other); });
      compare(op.name, [&](const Variable& v) { return op.f(other, v); });
    }
  });
  CHECK(plain.size() == unary_cases().size() + 2 * binary_cases().size());
}

TEST_CASE("the number of threads changes no bit") {
  const Tensor x = positive_grid({300, 1001}, 0.013, Dtype::f32), row = positive_grid({1001}, 0.007, Dtype::f32);
  const int before = num_threads();
  const auto all = [&] {
    std::vector<float> values;
    for (const Variable& y : {exp(x), x * row, pow(x, row), gelu(x)}) {
      const std::vector<float> v = y.value().to_vector<float>();
      values.insert(values.end(), v.begin(), v.end());
    }
    return values;
  };
  set_num_threads(1);
  const std::vector<float> one = all();
  set_num_threads(3);
  const std::vector<float> three = all();
  set_num_threads(before);
  CHECK(one == three);
}

TEST_CASE("elementwise gradients") {
  using In = const std::vector<Variable>&;
  for (const Shape& shape : shapes_to_try()) {
    INFO(shape);
    const Tensor x = grid(shape), above = positive_grid(shape);
    check_gradients("neg", [](In v) { return -v[0]; }, {x});
    check_gradients("abs", [](In v) { return abs(v[0]); }, {x});
    check_gradients("exp", [](In v) { return exp(v[0]); }, {x});
    check_gradients("log", [](In v) { return log(v[0]); }, {above});
    check_gradients("sqrt", [](In v) { return sqrt(v[0]); }, {above});
    check_gradients("square", [](In v) { return square(v[0]); }, {x});
    check_gradients("tanh", [](In v) { return tanh(v[0]); }, {x});
    check_gradients("sigmoid", [](In v) { return sigmoid(v[0]); }, {x});
    check_gradients("relu", [](In v) { return relu(v[0]); }, {x});
    check_gradients("gelu", [](In v) { return gelu(v[0]); }, {x});
    check_gradients("gelu_tanh", [](In v) { return gelu_tanh(v[0]); }, {x});
    check_gradients("elu1", [](In v) { return elu1(v[0]); }, {x});
    check_gradients("softplus", [](In v) { return softplus(v[0]); }, {x});
    check_gradients("elu", [](In v) { return elu(v[0], 0.75); }, {x});
    check_gradients("clamp", [](In v) { return clamp(v[0], -1, 0.6); }, {x});
    check_gradients("pow_scalar", [](In v) { return pow(v[0], 3); }, {x});
    check_gradients("pow_scalar", [](In v) { return pow(v[0], -1.5); }, {above});
    check_gradients("affine", [](In v) { return 1 - v[0] * 3 + (v[0] - 2); }, {x});
  }
}

TEST_CASE("gradients of two inputs, broadcasts undone") {
  using In = const std::vector<Variable>&;
  for (const auto& [shape_a, shape_b] : shape_pairs()) {
    INFO(shape_a, " ", shape_b);
    const Tensor a = grid(shape_a, 0.013), b = grid(shape_b, 0.007);
    const Tensor above_a = positive_grid(shape_a, 0.013), above_b = positive_grid(shape_b, 0.007);
    check_gradients("add", [](In v) { return v[0] + v[1]; }, {a, b});
    check_gradients("sub", [](In v) { return v[0] - v[1]; }, {a, b});
    check_gradients("mul", [](In v) { return v[0] * v[1]; }, {a, b});
    check_gradients("div", [](In v) { return v[0] / v[1]; }, {a, above_b});
    check_gradients("pow", [](In v) { return pow(v[0], v[1]); }, {above_a, b});
    check_gradients("maximum", [](In v) { return maximum(v[0], v[1]); }, {a, b});
    check_gradients("minimum", [](In v) { return minimum(v[0], v[1]); }, {a, b});
    for (const BinaryCase& op : binary_cases()) {  // one input constant
      check_gradients(op.name.c_str(), [&](In v) { return op.f(v[0], above_b); }, {above_a});
      check_gradients(op.name.c_str(), [&](In v) { return op.f(above_a, v[0]); }, {above_b});
    }
  }
}

TEST_CASE("an input given twice gets both gradients") {
  check_gradients("mul", [](const std::vector<Variable>& x) { return x[0] * x[0]; }, {grid({5})});
  check_gradients("add", [](const std::vector<Variable>& x) { return x[0] + x[0]; }, {grid({5})});
  check_gradients("div", [](const std::vector<Variable>& x) { return x[0] / x[0]; }, {positive_grid({5})});
}

TEST_CASE("operators with numbers") {
  const Tensor x = Tensor::from({1.0f, 2.0f, -0.0f, 10.0f}, {4});
  CHECK((x + 1.5).value().to_vector<float>() == std::vector<float>{2.5f, 3.5f, 1.5f, 11.5f});
  CHECK((1.5 + x).value().to_vector<float>() == std::vector<float>{2.5f, 3.5f, 1.5f, 11.5f});
  CHECK((x - 1).value().to_vector<float>() == std::vector<float>{0, 1, -1, 9});
  CHECK((1 - x).value().to_vector<float>() == std::vector<float>{0, -1, 1, -9});
  CHECK((2 * x).value().to_vector<float>() == std::vector<float>{2, 4, -0.0f, 20});
  CHECK((x / 3).value().to_vector<float>() == std::vector<float>{1.0f / 3, 2.0f / 3, -0.0f, 10.0f / 3});
  CHECK((3 / x).value().to_vector<float>() ==
        std::vector<float>{3, 1.5f, -std::numeric_limits<float>::infinity(), 0.3f});
  CHECK(std::signbit((2 * x).value().to_vector<float>()[2]));
  CHECK(std::signbit((x / 3).value().to_vector<float>()[2]));
  check_gradients("affine", [](const std::vector<Variable>& v) { return (1 - v[0] * 3) + (v[0] - 2); }, {grid({7})});
  check_gradients("div", [](const std::vector<Variable>& v) { return v[0] / 3 + 2 / v[0]; }, {positive_grid({7})});
}

TEST_CASE("slopes at kinks and edges") {
  const double inf = std::numeric_limits<double>::infinity();
  const auto at = [](const std::function<Variable(const Variable&)>& f, std::vector<double> x) {
    const int64_t n = static_cast<int64_t>(x.size());
    return grad_of(f, Tensor::from(x, {n})).to_vector<double>();
  };
  using V = const Variable&;
  CHECK(at([](V x) { return relu(x); }, {-1, -0.0, 0, 2}) == std::vector<double>{0, 0, 0, 1});
  CHECK(at([](V x) { return abs(x); }, {-1, -0.0, 0, 2}) == std::vector<double>{-1, 0, 0, 1});
  CHECK(at([](V x) { return sqrt(x); }, {0, 4}) == std::vector<double>{inf, 0.25});
  CHECK(at([](V x) { return clamp(x, -1, 2); }, {-3, -1, 0, 2, 5}) == std::vector<double>{0, 1, 1, 1, 0});
  CHECK(at([](V x) { return pow(x, 0); }, {0, -2, 3}) == std::vector<double>{0, 0, 0});
  CHECK(at([](V x) { return pow(x, 1); }, {0, -2, 3}) == std::vector<double>{1, 1, 1});
  CHECK(at([](V x) { return pow(x, 2); }, {0, -2, 3}) == std::vector<double>{0, -4, 6});
  CHECK(at([](V x) { return softplus(x); }, {1000, -1000, 0}) == std::vector<double>{1, 0, 0.5});
  CHECK(at([](V x) { return elu1(x); }, {100, 1000, 0}) == std::vector<double>{1, 1, 1});
  CHECK(at([](V x) { return gelu(x); }, {1e200, -1e200}) == std::vector<double>{1, 0});
  CHECK(at([](V x) { return gelu_tanh(x); }, {1e200, -1e200}) == std::vector<double>{1, 0});
  CHECK(softplus(Tensor::from({1000.0f, -1000.0f}, {2})).value().to_vector<float>() == std::vector<float>{1000, 0});
}

TEST_CASE("numerics LA1: elu1 keeps small values") {
  const std::vector<float> y =
      elu1(Tensor::from({-8.0f, -17.0f, -20.0f, -50.0f, -87.0f}, {5})).value().to_vector<float>();
  const double wanted[] = {3.3546263e-4, 4.1399377e-8, 2.0611536e-9, 1.9287498e-22, 1.6458e-38};
  for (size_t i = 0; i < 5; ++i) CHECK(y[i] == doctest::Approx(wanted[i]).epsilon(i < 4 ? 1e-6 : 1e-4).scale(0));
}

TEST_CASE("pow of zero and of negative bases") {
  const Tensor a = Tensor::from({-2.0, -1.5, 0.0, 0.0, 0.0, 3.0}, {6}),
               b = Tensor::from({3.0, 2.0, 0.0, 1.0, 2.0, -1.0}, {6});
  CHECK(pow(a, b).value().to_vector<double>() == std::vector<double>{-8, 2.25, 1, 0, 0, 1 / 3.0});
  CHECK(grad_of([&](const Variable& x) { return pow(x, b); }, a).to_vector<double>() ==
        std::vector<double>{12, -3, 0, 1, 0, -1 / 9.0});
  const std::vector<double> db = grad_of([&](const Variable& x) { return pow(a, x); }, b).to_vector<double>();
  CHECK((std::isnan(db[0]) && std::isnan(db[1])));
  CHECK((db[2] == 0 && db[3] == 0 && db[4] == 0));
  CHECK(std::isnan(pow(Tensor::scalar(-2), 0.5).item()));
}

TEST_CASE("maximum and minimum share the gradient of equal inputs and pass NaN on") {
  const Tensor a = Tensor::from({1.0, 2.0, 3.0}, {3}), b = Tensor::from({1.0, 5.0, -1.0}, {3});
  CHECK(grad_of([&](const Variable& x) { return maximum(x, b); }, a).to_vector<double>() ==
        std::vector<double>{0.5, 0, 1});
  CHECK(grad_of([&](const Variable& x) { return maximum(b, x); }, a).to_vector<double>() ==
        std::vector<double>{0.5, 0, 1});
  CHECK(grad_of([&](const Variable& x) { return minimum(x, b); }, a).to_vector<double>() ==
        std::vector<double>{0.5, 1, 0});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& f : {maximum, minimum}) {
    CHECK(std::isnan(f(Tensor::scalar(nan), Tensor::scalar(1)).item()));
    CHECK(std::isnan(f(Tensor::scalar(1), Tensor::scalar(nan)).item()));
  }
}

TEST_CASE("both inputs of a sum own their gradients") {
  Variable a = Variable::leaf(grid({4})), b = Variable::leaf(grid({4}));
  Tape tape;
  tape.backward(a + b, Tensor::full({4}, 1, Dtype::f64));
  a.mutable_grad().fill(7);
  CHECK(b.grad().to_vector<double>() == std::vector<double>(4, 1.0));
}

TEST_CASE("what elementwise ops keep") {
  const auto kept = [](const std::function<Variable(const Variable&)>& f) {
    Tape tape;
    const Variable y = f(Variable::leaf(Tensor::full({100}, 0.5)));
    return tape.bytes_kept();
  };
  const Tensor other = Tensor::full({100}, 2), one = Tensor::scalar(2);
  using V = const Variable&;
  CHECK(kept([&](V x) { return x + other; }) == 0);
  CHECK(kept([&](V x) { return other - x; }) == 0);
  CHECK(kept([&](V x) { return 3 * x + 1; }) == 0);
  CHECK(kept([&](V x) { return -x; }) == 0);
  CHECK(kept([&](V x) { return x * one; }) == 4);
  CHECK(kept([&](V x) { return x / 3; }) == 4);
  CHECK(kept([&](V x) { return x * other; }) == 400);
  CHECK(kept([&](V x) { return exp(x); }) == 400);
  CHECK(kept([&](V x) { return pow(x, other); }) == 800);
}

TEST_CASE("errors of elementwise ops, word for word") {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4});
  CHECK(message_of([&] { (void)(a + b); }) ==
        "add: (2, 3) and (4) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK(message_of([&] { (void)pow(a, b); }) ==
        "pow: (2, 3) and (4) do not broadcast; aligned at the end, sizes must be equal or 1");
  CHECK(message_of([&] { (void)(a * a.to(Dtype::f64)); }) ==
        "mul: one input is f32 and another f64; convert one with .to(dtype)");
  CHECK(message_of([&] { (void)exp(Tensor::arange(3)); }) == "exp: dtype i32 given, f32 or f64 wanted");
  CHECK(message_of([&] { (void)(Tensor::arange(3) + Tensor::arange(3)); }) ==
        "add: dtype i32 given, f32 or f64 wanted");
  CHECK(message_of([&] { (void)clamp(a, 2, 1); }) == "clamp: low 2 and high 1 given, low <= high wanted");
}
