#include "linnet/ops/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

using Axes = std::initializer_list<int64_t>;
using Real = long double;

struct ReduceCase {
  std::string name;
  std::function<Variable(const Variable&, Axes, bool)> f;
  std::function<Real(const std::vector<Real>&)> reference;
};

Real total(const std::vector<Real>& x) {
  Real sum = 0;
  for (Real value : x) sum += value;
  return sum;
}

Real variance(const std::vector<Real>& x, Real correction) {
  const Real n = static_cast<Real>(x.size()), mean = total(x) / n;
  Real sum = 0;
  for (Real value : x) sum += (value - mean) * (value - mean);
  return n > correction ? sum / (n - correction) : std::numeric_limits<Real>::quiet_NaN();
}

const std::vector<ReduceCase>& cases() {
  using X = const std::vector<Real>&;
  static const std::vector<ReduceCase> all = {
      {"sum", [](const Variable& x, Axes a, bool k) { return sum(x, a, k); }, total},
      {"mean", [](const Variable& x, Axes a, bool k) { return mean(x, a, k); },
       [](X x) { return total(x) / static_cast<Real>(x.size()); }},
      {"max", [](const Variable& x, Axes a, bool k) { return max(x, a, k); },
       [](X x) { return *std::max_element(x.begin(), x.end()); }},
      {"min", [](const Variable& x, Axes a, bool k) { return min(x, a, k); },
       [](X x) { return *std::min_element(x.begin(), x.end()); }},
      {"logsumexp", [](const Variable& x, Axes a, bool k) { return logsumexp(x, a, k); },
       [](X x) {
         Real sum = 0;
         for (Real value : x) sum += std::exp(value);
         return std::log(sum);
       }},
      {"var", [](const Variable& x, Axes a, bool k) { return var(x, a, k); }, [](X x) { return variance(x, 1); }},
      {"population var", [](const Variable& x, Axes a, bool k) { return var(x, a, k, 0); },
       [](X x) { return variance(x, 0); }},
  };
  return all;
}

struct Reduced {
  Shape shape;
  Axes axes;
  Shape left_out, kept;
};

// Single axes, neighbours, axes apart, all, negative ones, size 1, and an empty axis that is not reduced.
const std::vector<Reduced>& reduced_shapes() {
  static const std::initializer_list<int64_t> kNone{}, kFirst{0}, kLast{-1}, kMiddle{1}, kEnds{0, -1}, kBack{-1, -2},
      kAll{2, 0, 1};
  static const std::vector<Reduced> shapes = {
      {{}, kNone, {}, {}},
      {{1}, kLast, {}, {1}},
      {{7}, kNone, {}, {1}},
      {{3, 5}, kFirst, {5}, {1, 5}},
      {{3, 5}, kLast, {3}, {3, 1}},
      {{3, 5}, kNone, {}, {1, 1}},
      {{4, 3, 5}, kMiddle, {4, 5}, {4, 1, 5}},
      {{4, 3, 5}, kEnds, {3}, {1, 3, 1}},
      {{4, 3, 5}, kBack, {4}, {4, 1, 1}},
      {{4, 3, 5}, kAll, {}, {1, 1, 1}},
      {{0, 4}, kLast, {0}, {0, 1}},
      {{37, 129}, kLast, {37}, {37, 1}},
      {{37, 129}, kFirst, {129}, {1, 129}},
  };
  return shapes;
}

Tensor grad_of(const std::function<Variable(const Variable&)>& f, const Tensor& x) {
  Variable leaf = Variable::leaf(x);
  Tape tape;
  Variable y = f(leaf);
  tape.backward(y, Tensor::full(y.shape(), 1, y.dtype()));
  return leaf.grad();
}

template <class T>
double worst_error(const Tensor& x, const Tensor& y, const Shape& kept, const ReduceCase& op) {
  std::vector<std::vector<Real>> groups(static_cast<size_t>(y.numel()));
  const std::vector<T> from = x.to_vector<T>(), to = y.to_vector<T>();
  for (size_t i = 0; i < from.size(); ++i)
    groups[static_cast<size_t>(broadcast_index(static_cast<int64_t>(i), x.shape(), kept))].push_back(from[i]);
  double worst = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Real wanted = op.reference(groups[i]), got = to[i];
    if (std::isnan(wanted) && std::isnan(got)) continue;
    Real scale = 0;
    for (Real value : groups[i]) scale = std::max(scale, std::abs(value));
    worst = std::max(worst, static_cast<double>(std::abs(got - wanted) / std::max(scale, std::abs(wanted))));
  }
  return worst;
}

}  // namespace

TEST_CASE("reductions agree with plain loops over any axes, at every level") {
  for_each_level([](const std::string& level_name) {
    for (const ReduceCase& op : cases())
      for (const Reduced& r : reduced_shapes()) {
        INFO(op.name, " of ", r.shape, " to ", r.kept, ", level ", level_name);
        const Tensor x = grid(r.shape), narrow = x.to(Dtype::f32);
        CHECK(op.f(x, r.axes, false).shape() == r.left_out);
        const Variable y = op.f(x, r.axes, true), y32 = op.f(narrow, r.axes, true);
        REQUIRE(y.shape() == r.kept);
        REQUIRE(y32.shape() == r.kept);
        CHECK(worst_error<double>(x, y.value(), r.kept, op) <= 2e-15);
        CHECK(worst_error<float>(narrow, y32.value(), r.kept, op) <= 1e-6);
        CHECK(same_bits(op.f(x, r.axes, false).value().reshape(r.kept), y.value()));
      }
  });
}

TEST_CASE("gradients of reductions") {
  using In = const std::vector<Variable>&;
  for (const Reduced& r : reduced_shapes())
    for (bool keep : {false, true}) {
      INFO(r.shape, " to ", r.kept);
      const Tensor x = grid(r.shape);
      check_gradients("sum", [&](In v) { return sum(v[0], r.axes, keep); }, {x});
      check_gradients("mean", [&](In v) { return mean(v[0], r.axes, keep); }, {x});
      check_gradients("logsumexp", [&](In v) { return logsumexp(v[0], r.axes, keep); }, {x});
      check_gradients("mean", [&](In v) { return var(v[0], r.axes, keep, 0); }, {x});
      if (x.numel() != 1) check_gradients("sub", [&](In v) { return var(v[0], r.axes, keep); }, {x});
      if (x.numel() > 101) continue;  // the grid repeats: ties
      check_gradients("max", [&](In v) { return max(v[0], r.axes, keep); }, {x});
      check_gradients("min", [&](In v) { return min(v[0], r.axes, keep); }, {x});
    }
  std::vector<double> values;
  for (int i = 0; i < 37 * 129; ++i) values.push_back(i * 1009 % 4773);
  const Tensor distinct = Tensor::from(values, {37, 129});
  check_gradients("max", [](In v) { return max(v[0], {1}); }, {distinct});
  check_gradients("min", [](In v) { return min(v[0], {0}); }, {distinct});
}

TEST_CASE("numerics AG4: reductions over nothing") {
  const Tensor x = Tensor::zeros({2, 0, 3}, Dtype::f64);
  CHECK(sum(x, {1}).value().to_vector<double>() == std::vector<double>(6, 0.0));
  CHECK(sum(x).item() == 0);
  CHECK(logsumexp(x, {1}).value().to_vector<double>() == std::vector<double>(6, -kInf));
  for (const double value : mean(x, {1}).value().to_vector<double>()) CHECK(std::isnan(value));
  for (const double value : var(x, {1}).value().to_vector<double>()) CHECK(std::isnan(value));
  CHECK(max(x, {2}).shape() == Shape{2, 0});  // no row, no question
  check_gradients("sum", [](const std::vector<Variable>& v) { return sum(v[0], {1}); }, {x});
  check_gradients("max", [](const std::vector<Variable>& v) { return max(v[0], {2}); }, {x});
  CHECK(grad_of([](const Variable& v) { return logsumexp(v, {1}); }, x).shape() == x.shape());
  CHECK(message_of([&] { (void)max(x, {1}); }) == "max: (2, 0, 3) has nothing to reduce over");
  CHECK(message_of([&] { (void)min(x); }) == "min: (2, 0, 3) has nothing to reduce over");
}

TEST_CASE("ties in max and min split the gradient") {
  const Tensor x = Tensor::from({1.0, 3.0, 3.0, 2.0, 2.0, 2.0, 0.0, -1.0}, {2, 4});
  CHECK(grad_of([](const Variable& v) { return max(v, {1}); }, x).to_vector<double>() ==
        std::vector<double>{0, 0.5, 0.5, 0, 0.5, 0.5, 0, 0});
  CHECK(grad_of([](const Variable& v) { return min(v, {1}); }, x).to_vector<double>() ==
        std::vector<double>{1, 0, 0, 0, 0, 0, 0, 1});
  CHECK(grad_of([](const Variable& v) { return max(v); }, Tensor::full({2, 4}, 5, Dtype::f64)).to_vector<double>() ==
        std::vector<double>(8, 0.125));
}

TEST_CASE("NaN and infinities in max and min") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = Tensor::from({nan, 1.0, 2.0, nan, kInf, -kInf, -kInf, -kInf}, {4, 2});
  for_each_level([&](const std::string& level_name) {
    INFO("level ", level_name);
    const std::vector<double> top = max(x, {1}).value().to_vector<double>(),
                              low = min(x, {1}).value().to_vector<double>();
    CHECK((std::isnan(top[0]) && std::isnan(top[1]) && std::isnan(low[0]) && std::isnan(low[1])));
    CHECK((top[2] == kInf && low[2] == -kInf && top[3] == -kInf));
  });
  CHECK(grad_of([](const Variable& v) { return max(v, {1}); }, x).to_vector<double>() ==
        std::vector<double>{0, 0, 0, 0, 1, 0, 0.5, 0.5});
}

TEST_CASE("numerics LS1: logsumexp at the ends") {
  const Tensor x = Tensor::from({-kInf, -kInf, 1000.0, 1000.0, -1000.0, -1000.5, kInf, 1.0, -kInf, 5.0}, {5, 2});
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const Tensor y = logsumexp(x.to(dtype), {1}).value().to(Dtype::f64);
    const std::vector<double> v = y.to_vector<double>();
    CHECK(v[0] == -kInf);
    CHECK(v[1] == doctest::Approx(1000.6931472).epsilon(1e-7));
    CHECK(v[2] == doctest::Approx(-999.5259230).epsilon(1e-7));
    CHECK(v[3] == kInf);
    CHECK(v[4] == 5);
    const std::vector<double> g =
        grad_of([](const Variable& u) { return logsumexp(u, {1}); }, x.to(dtype)).to(Dtype::f64).to_vector<double>();
    CHECK((g[0] == 0 && g[1] == 0));
    CHECK((g[2] == doctest::Approx(0.5).epsilon(1e-4) && g[3] == doctest::Approx(0.5).epsilon(1e-4)));
    CHECK(g[4] == doctest::Approx(0.62245933).epsilon(1e-4));
    CHECK((g[8] == 0 && g[9] == 1));
  }
}

TEST_CASE("numerics LS5: cross-entropy as logsumexp minus a logit") {
  const Tensor far = Tensor::from({1000.0, 0.0, -1000.0}, {3}), near = Tensor::from({2.0, 0.0, -1.0}, {3});
  const auto loss = [](const Variable& x, double onehot_last) {
    const Tensor onehot = Tensor::from({1 - onehot_last, 0.0, onehot_last}, {3});
    return logsumexp(x) - sum(x * onehot);
  };
  CHECK(loss(far, 1).item() == 2000);
  CHECK(grad_of([&](const Variable& x) { return loss(x, 1); }, far).to_vector<double>() ==
        std::vector<double>{1, 0, -1});
  CHECK(loss(near, 0).item() == doctest::Approx(.16984602).epsilon(1e-7));
}

TEST_CASE("sums are pairwise and variances two-pass") {
  const Tensor ones = Tensor::full({1, 2000003}, 0.1), offset = Tensor::from({1999.0f, 2000.0f, 2001.0f, 2002.0f}, {4});
  CHECK(sum(ones).item() == doctest::Approx(2000003 * static_cast<double>(0.1f)).epsilon(1e-6));
  CHECK(var(offset, {}, false, 0).item() == 1.25);
  CHECK(mean(Tensor::full({3}, 0.1)).item() == static_cast<double>(0.1f));
}

TEST_CASE("what reductions keep") {
  const auto kept = [](const std::function<Variable(const Variable&)>& f) {
    Tape tape;
    const Variable y = f(Variable::leaf(Tensor::full({10, 10}, 0.5)));
    return tape.bytes_kept();
  };
  CHECK(kept([](const Variable& x) { return sum(x); }) == 0);
  CHECK(kept([](const Variable& x) { return mean(x, {1}); }) == 0);
  CHECK(kept([](const Variable& x) { return max(x, {1}); }) == 440);
  CHECK(kept([](const Variable& x) { return logsumexp(x, {1}); }) == 440);
}

TEST_CASE("errors of reductions, word for word") {
  const Tensor x = Tensor::zeros({2, 3});
  CHECK(message_of([&] { (void)sum(x, {2}); }) == "sum: axis 2 of a tensor with 2 axes");
  CHECK(message_of([&] { (void)mean(x, {-3}); }) == "mean: axis -3 of a tensor with 2 axes");
  CHECK(message_of([&] { (void)max(x, {1, -1}); }) == "max: axis -1 of (2, 3) is listed twice");
  CHECK(message_of([&] { (void)logsumexp(Tensor::arange(3)); }) == "logsumexp: dtype i32 given, f32 or f64 wanted");
  CHECK(message_of([&] { (void)var(Tensor::arange(3)); }) == "var: dtype i32 given, f32 or f64 wanted");
}
