#include "linnet/ops/layer_norm.h"

#include <cmath>

#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/gradients.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Result {
  Tensor y, dx, dweight, dbias;
};

/// Forward and backward; weight and bias may be undefined.
Result run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy, double eps = 1e-5) {
  const Variable xv = Variable::leaf(x);
  const Variable w = weight.defined() ? Variable::leaf(weight) : Variable();
  const Variable b = bias.defined() ? Variable::leaf(bias) : Variable();
  Tape tape;
  const Variable y = layer_norm(xv, w, b, eps);
  tape.backward(y, dy);
  return {y.value(), xv.grad(), w.defined() ? w.grad() : Tensor(), b.defined() ? b.grad() : Tensor()};
}

/// The formulas, row by row, in double.
Result reference(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy) {
  const int64_t n = weight.numel(), rows = x.numel() / std::max<int64_t>(1, n);
  const auto xs = x.to(Dtype::f64).to_vector<double>(), w = weight.to(Dtype::f64).to_vector<double>(),
             b = bias.to(Dtype::f64).to_vector<double>(), d = dy.to(Dtype::f64).to_vector<double>();
  std::vector<double> y(xs.size()), dx(xs.size()), dw(w.size()), db(w.size());
  for (int64_t r = 0; r < rows; ++r) {
    const double *xr = xs.data() + r * n, *dr = d.data() + r * n;
    double mean = 0, variance = 0, mean_h = 0, mean_hx = 0;
    for (int64_t i = 0; i < n; ++i) mean += xr[i] / n;
    for (int64_t i = 0; i < n; ++i) variance += (xr[i] - mean) * (xr[i] - mean) / n;
    const double rstd = 1 / std::sqrt(variance + 1e-5);
    for (int64_t i = 0; i < n; ++i) {
      const double xhat = (xr[i] - mean) * rstd;
      y[r * n + i] = xhat * w[i] + b[i];
      dw[i] += dr[i] * xhat, db[i] += dr[i];
      mean_h += w[i] * dr[i] / n, mean_hx += w[i] * dr[i] * xhat / n;
    }
    for (int64_t i = 0; i < n; ++i) dx[r * n + i] = rstd * (w[i] * dr[i] - mean_h - (xr[i] - mean) * rstd * mean_hx);
  }
  return {Tensor::from(y, x.shape()), Tensor::from(dx, x.shape()), Tensor::from(dw, weight.shape()),
          Tensor::from(db, weight.shape())};
}

Tensor row(const std::vector<float>& values) { return Tensor::from(values, {static_cast<int64_t>(values.size())}); }

}  // namespace

TEST_CASE("layer_norm: gradients, with and without weight and bias") {
  for (Shape shape : {Shape{2, 3, 4}, Shape{7}, Shape{3, 1}, Shape{0, 4}, Shape{4, 0}, Shape{37, 129}, Shape{1, 2050}})
    for (int parts = 0; parts < 4; ++parts) {
      INFO(shape.str(), parts & 1 ? " weight" : "", parts & 2 ? " bias" : "");
      std::vector<Tensor> inputs = {grid(shape)};
      if (parts & 1) inputs.push_back(grid(shape.last(1), 0.005));
      if (parts & 2) inputs.push_back(grid(shape.last(1), 0.009));
      check_gradients("layer_norm",
                      [parts](const std::vector<Variable>& in) {
                        return layer_norm(in[0], parts & 1 ? in[1] : Variable(), parts & 2 ? in.back() : Variable());
                      },
                      inputs, {.full_below = 1024});
    }
}

TEST_CASE("layer_norm: over several axes") {
  check_gradients("layer_norm", [](const std::vector<Variable>& in) { return layer_norm(in[0], in[1], in[2]); },
                  {grid({2, 3, 4}), grid({3, 4}, 0.005), grid({3, 4}, 0.009)});
  const Tensor x = grid({2, 3, 4}), flat = x.reshape(Shape{2, 12});
  CHECK(deviation(layer_norm(x, Tensor::full({3, 4}, 1, Dtype::f64)).value().reshape(Shape{2, 12}),
                  layer_norm(flat).value()) == 0);
}

TEST_CASE("layer_norm: agrees with the formulas at every level") {
  for_each_level([](const char* level) {
    for (Shape shape : {Shape{5, 3}, Shape{64, 64}, Shape{203, 67}, Shape{3, 5000}})
      for (Dtype dtype : {Dtype::f32, Dtype::f64}) {
        INFO(level, " ", shape.str(), " ", name(dtype));
        const Tensor x = grid(shape), w = grid(shape.last(1), 0.005), b = grid(shape.last(1), 0.009),
                     dy = grid(shape, 0.001);
        const Result got = run(x.to(dtype), w.to(dtype), b.to(dtype), dy.to(dtype)), want = reference(x, w, b, dy);
        const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
        CHECK(deviation(got.y, want.y) <= tolerance);
        CHECK(deviation(got.dx, want.dx) <= tolerance);
        CHECK(deviation(got.dweight, want.dweight) <= tolerance);
        CHECK(deviation(got.dbias, want.dbias) <= tolerance);
      }
  });
}

TEST_CASE("layer_norm: rows of every width that a GPU treats in its own way, and many of them") {
  const auto check = [](const Shape& shape, Dtype dtype) {
    INFO(shape.str(), " ", name(dtype));
    const Tensor x = grid(shape, 0.013, dtype), w = grid(shape.last(1), 0.005, dtype),
                 b = grid(shape.last(1), 0.009, dtype), dy = grid(shape, 0.001, dtype);
    const auto host = [](const Tensor& t) { return t.to(Device::cpu); };
    const Result got = run(x, w, b, dy), want = run(host(x), host(w), host(b), host(dy));
    const double tolerance = dtype == Dtype::f32 ? 1e-5 : 1e-12;
    CHECK(deviation(got.y, want.y) <= tolerance);
    CHECK(deviation(got.dx, want.dx) <= tolerance);
    CHECK(deviation(got.dweight, want.dweight) <= tolerance);
    CHECK(deviation(got.dbias, want.dbias) <= tolerance);
  };
  for (int64_t width : {1, 16, 17, 31, 32, 33, 1024, 1025, 5000})
    for (Dtype dtype : {Dtype::f32, Dtype::f64}) check({3, width}, dtype);
  for (Dtype dtype : {Dtype::f32, Dtype::f64}) check({9001, 33}, dtype);
  check({66000, 3}, Dtype::f32);
}

TEST_CASE("layer_norm: the known gradient of [1, 2, 3, 4]") {
  for_each_level([](const char* level) {
    INFO(level);
    const Result r = run(row({1, 2, 3, 4}), Tensor::full({4}, 1), Tensor::zeros({4}), row({1, 0, 0, 0}));
    CHECK(deviation(r.dx, row({.268330304f, -.357768372f, -.089443435f, .178881503f})) <= 1e-6);
    CHECK(deviation(r.dweight, row({-1.341635420f, 0, 0, 0})) <= 1e-6);
    double sum = 0;
    for (float d : r.dx.to_vector<float>()) sum += d;
    CHECK(std::abs(sum) <= 1e-6);
  });
}

TEST_CASE("layer_norm: a large mean costs nothing (LN1, LN2)") {
  const Tensor want = row({-1.34163542f, -.44721181f, .44721181f, 1.34163542f});
  for_each_level([&](const char* level) {
    for (float mean : {1999.f, 40000.f, 1e6f}) {
      INFO(level, " ", mean);
      CHECK(deviation(layer_norm(row({mean, mean + 1, mean + 2, mean + 3})).value(), want) <= 1e-6);
    }
  });
}

TEST_CASE("layer_norm: a tiny spread on a large mean (LN4)") {
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(1000 + static_cast<float>(i) * 1e-3f);
  for_each_level([&](const char* level) {
    INFO(level);
    const std::vector<float> y = layer_norm(row(values)).value().to_vector<float>();
    CHECK(y[0] == doctest::Approx(-1.341508).epsilon(1e-4));
    CHECK(y[15] == doctest::Approx(1.344237).epsilon(1e-4));
  });
}

TEST_CASE("layer_norm: one element, or equal ones, leak no rounding (LN6)") {
  for_each_level([](const char* level) {
    INFO(level);
    const Result one = run(row({1e6}), row({2}), row({3}), row({.7f}));
    CHECK(one.y.item() == 3);
    CHECK(one.dweight.item() == 0);
    CHECK(one.dx.item() == 0);
    CHECK(run(row({1e6f}), row({.1f}), row({3}), row({.7f})).dx.item() == 0);
    Generator generator{6, 0, 0};
    for (int64_t n = 1; n < 40; ++n) {
      const Tensor x = Tensor::full({n}, 1e3 * generator.uniform());
      CHECK(layer_norm(x, {}, Tensor::full({n}, .25)).value().to_vector<float>() == std::vector<float>(n, .25f));
    }
  });
}

TEST_CASE("layer_norm: the rank of the input does not matter (LN7)") {
  const Tensor x = grid({2, 3, 4}, 0.013, Dtype::f32), dy = grid({2, 3, 4}, 0.001, Dtype::f32);
  const Tensor w = grid({4}, 0.005, Dtype::f32), b = grid({4}, 0.009, Dtype::f32);
  const Result deep = run(x, w, b, dy), flat = run(x.reshape(Shape{6, 4}), w, b, dy.reshape(Shape{6, 4}));
  CHECK(same_bits(deep.dx.reshape(Shape{6, 4}), flat.dx));
  CHECK(same_bits(deep.dweight, flat.dweight));
  CHECK(same_bits(deep.dbias, flat.dbias));
}

TEST_CASE("layer_norm: many rows, bias alone (LN9)") {
  const int64_t rows = 70001;
  const Result r = run(Tensor::normal({rows, 6}), {}, Tensor::zeros({6}), Tensor::full({rows, 6}, 1));
  CHECK(r.dbias.to_vector<float>() == std::vector<float>(6, 70001));
}

TEST_CASE("layer_norm: two backward passes double the gradients (LN10)") {
  const Variable x = grid({5, 4}, 0.013, Dtype::f32), w = Variable::leaf(Tensor::full({4}, 1));
  Tensor once;
  for (int pass = 0; pass < 2; ++pass) {
    Tape tape;
    tape.backward(layer_norm(x, w), grid({5, 4}, 0.001, Dtype::f32));
    if (pass == 0) once = w.grad().clone();
  }
  for (int i = 0; i < 4; ++i) CHECK(w.grad().to_vector<float>()[i] == 2 * once.to_vector<float>()[i]);
}

TEST_CASE("layer_norm: the number of threads changes no bit") {
  manual_seed(12);
  const Tensor x = Tensor::normal({3001, 130}), w = Tensor::normal({130}), b = Tensor::normal({130});
  const Tensor dy = Tensor::normal({3001, 130});
  const int before = num_threads();
  set_num_threads(1);
  const Result one = run(x, w, b, dy);
  for (int threads : {2, 5}) {
    set_num_threads(threads);
    const Result many = run(x, w, b, dy);
    CHECK(same_bits(many.y, one.y));
    CHECK(same_bits(many.dx, one.dx));
    CHECK(same_bits(many.dweight, one.dweight));
    CHECK(same_bits(many.dbias, one.dbias));
  }
  set_num_threads(before);
}

TEST_CASE("layer_norm: errors") {
  const auto zeros = [](const Shape& s) { return Tensor::zeros(s); };
  CHECK(message_of([&] {
          layer_norm(zeros({2, 3}), zeros({4}));
        }) == "layer_norm: input (2, 3) does not end in the weight's shape (4)");
  CHECK(message_of([&] {
          layer_norm(zeros({2, 3}), {}, zeros({2, 2, 3}));
        }) == "layer_norm: input (2, 3) does not end in the bias's shape (2, 2, 3)");
  CHECK(message_of([&] {
          layer_norm(zeros({2, 3}), zeros({2, 3}), zeros({3}));
        }) == "layer_norm: weight (2, 3) and bias (3) differ in shape");
  CHECK(message_of([&] { layer_norm(zeros({})); }) == "layer_norm: input () has no axis to normalise");
  CHECK(message_of([&] { layer_norm(zeros({3}), {}, {}, -1); }) ==
        "layer_norm: eps -1 given, wanted: finite and not negative");
  CHECK_THROWS_AS(layer_norm(zeros({2, 3}), Tensor::zeros({3}, Dtype::f64)), Error);
  CHECK_THROWS_AS(layer_norm(Tensor::zeros({2, 3}, Dtype::i32)), Error);
}

TEST_CASE("a constant row gives its bias and gradient 0 where eps is 0, or rounds to it") {
  for_each_level([&](const char* level) {
    CAPTURE(level);
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      for (const double eps : {0.0, 1e-60}) {
        if (eps > 0 && dtype == Dtype::f64) continue;
        Variable x = Variable::leaf(Tensor::full({2, 5}, 3.3, dtype));
        const Tensor weight = Tensor::full({5}, 2, dtype), bias = Tensor::full({5}, 0.25, dtype);
        Tape tape;
        const Variable y = layer_norm(x, weight, bias, eps);
        for (double value : y.value().to(Dtype::f64).to_vector<double>()) CHECK(value == 0.25);
        tape.backward(y, Tensor::full({2, 5}, 1, dtype));
        for (double value : x.grad().to(Dtype::f64).to_vector<double>()) CHECK(value == 0);
      }
    }
  });
}

TEST_CASE("an eps that is no finite number is refused") {
  for (const double eps : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THROWS_WITH_AS(layer_norm(Tensor::zeros({2, 3}), {}, {}, eps), doctest::Contains("finite and not negative"),
                         Error);
}
