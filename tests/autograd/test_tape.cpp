#include "linnet/autograd/tape.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cmath>
#include <memory>
#include <sstream>
#include <thread>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "support/arrays.h"

using namespace linnet;

namespace {

Variable product(const Variable& a, const Variable& b) {
  return record("product", compute::mul(a.value(), b.value()), {a, b}, keep(a.value(), b.value()),
                [](const Tensor& dy, const Tensor& x, const Tensor& y) -> Gradients {
                  return {compute::mul(dy, y), compute::mul(dy, x)};
                });
}
Variable plus(const Variable& a, const Variable& b) {
  return record("plus", compute::add(a.value(), b.value()), {a, b}, keep(), [](const Tensor& dy) -> Gradients {
    return {dy, dy};
  });
}
Variable leaf(double x) { return Variable::leaf(Tensor::scalar(x)); }

}  // namespace

TEST_CASE("gradients flow to leaves and add up") {
  Variable a = leaf(3), b = leaf(5);
  Tape tape;
  tape.backward(plus(product(a, b), a));
  CHECK(a.grad().item() == 6);
  CHECK(b.grad().item() == 3);
}

TEST_CASE("gradients of a second tape are added in place") {
  Variable a = leaf(3);
  for (int i = 0; i < 2; ++i) {
    Tape tape;
    tape.backward(product(a, Tensor::scalar(2)));
  }
  CHECK(a.grad().item() == 4);
}

TEST_CASE("each leaf owns its gradient") {
  Variable a = leaf(1), b = leaf(1);
  Tape tape;
  tape.backward(plus(a, b));
  CHECK_FALSE(a.grad().shares_storage(b.grad()));
  compute::scale_inplace(a.mutable_grad(), 10);
  CHECK(b.grad().item() == 1);
}

TEST_CASE("without a tape, and in a pause, nothing is recorded and nothing stays") {
  Variable a = leaf(2);
  int64_t live = memory_stats(default_device()).live;
  for (int i = 0; i < 1000; ++i) product(a, a);
  CHECK(memory_stats(default_device()).live == live);
  CHECK_FALSE(recording());
  Tape tape;
  CHECK(recording());
  {
    Tape::Pause pause;
    CHECK_FALSE(recording());
    product(a, a);
  }
  CHECK(tape.report().rows.empty());
  product(Tensor::scalar(1), Tensor::scalar(2));  // constants only
  CHECK(tape.report().rows.empty());
}

TEST_CASE("training is a property of the tape") {
  CHECK_FALSE(training());
  Tape outer;
  CHECK(training());
  {
    Tape inner({.training = false});
    CHECK_FALSE(training());
  }
  CHECK(training());
}

TEST_CASE("errors of backward say what to do") {
  Variable a = leaf(2);
  Variable unrecorded = product(a, a);
  Tape tape;
  CHECK_THROWS_WITH_AS(tape.backward(unrecorded),
                       "backward: the loss was not recorded on this tape; compute it while the tape is in scope, from "
                       "parameters that require a gradient",
                       Error);
  Variable wide = product(Variable::leaf(Tensor::zeros({2, 3})), Tensor::zeros({3}));
  CHECK_THROWS_WITH_AS(tape.backward(wide),
                       "backward: the loss has shape (2, 3), one element wanted; reduce it with sum or mean, or give "
                       "backward a seed of its shape",
                       Error);
  CHECK_THROWS_AS(tape.backward(wide, Tensor::zeros({2})), Error);
  Variable loss = product(a, a);
  tape.backward(loss);
  CHECK_THROWS_WITH_AS(tape.backward(loss),
                       "backward: this tape has ended; a tape replays once, so open a new one for the next step",
                       Error);
  CHECK_FALSE(recording());
}

TEST_CASE("a kept tensor that was changed since is an error that names the op") {
  Variable v = leaf(3);
  Tensor s = Tensor::scalar(5);
  Tape tape;
  Variable o = product(v, s);
  s.fill(10);
  CHECK_THROWS_WITH_AS(tape.backward(o),
                       "product: a tensor of shape () that it kept for backward was changed since; change a clone() of "
                       "it instead",
                       Error);
}

TEST_CASE("values of an outer tape are leaves to an inner one") {
  Variable a = leaf(3);
  Tape outer;
  Variable b = product(a, a);
  {
    Tape inner;
    inner.backward(product(b, Tensor::scalar(7)));
  }
  CHECK(b.grad().item() == 7);
  CHECK_FALSE(a.grad().defined());
  outer.backward(b);
  CHECK(a.grad().item() == 6);
}

TEST_CASE("tapes of two threads do not see each other") {
  Variable a = leaf(3);
  Tape tape;
  std::thread([&] {
    CHECK_FALSE(recording());
    Variable mine = leaf(2);
    Tape other;
    other.backward(product(mine, mine));
    CHECK(mine.grad().item() == 4);
  }).join();
  tape.backward(product(a, a));
  CHECK(a.grad().item() == 6);
}

TEST_CASE("the report counts each kept storage once and stays after backward") {
  Variable a = Variable::leaf(Tensor::zeros({10}));
  Tape tape;
  Variable b = product(a, a);
  Variable c = product(b, a);
  CHECK(tape.bytes_kept() == 80);
  tape.backward(c, Tensor::full({10}, 1));
  CHECK(tape.bytes_kept() == 0);
  TapeReport report = tape.report();
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].bytes_kept == 40);
  CHECK(report.rows[1].bytes_kept == 40);
  CHECK(report.rows[1].inputs == std::vector<int64_t>{0, -1});
  CHECK(report.table().find("product") != std::string::npos);
  CHECK(report.dot().find("n0 -> n1") != std::string::npos);
}

TEST_CASE("check_finite names the op that made the first NaN, either way") {
  Variable a = leaf(1e38);
  {
    Tape tape({.check_finite = true});
    CHECK_THROWS_WITH_AS(product(a, a), "product: made the first NaN or infinity, in an output of shape ()", Error);
  }
  Variable b = leaf(0);
  Tape tape({.check_finite = true});
  Variable c = record("root", Tensor::scalar(0), {b}, keep(b.value()),
                      [](const Tensor& dy, const Tensor& x) -> Gradients { return {compute::div(dy, x)}; });
  CHECK_THROWS_WITH_AS(tape.backward(c),
                       "root: backward made the first NaN or infinity, in the gradient of input 0 of shape ()", Error);
}

TEST_CASE("several outputs: one gradient each, undefined where none came") {
  Variable a = leaf(3);
  Tape tape;
  auto both = record_many("both", {Tensor::scalar(1), Tensor::scalar(2)}, std::span(&a, 1), {},
                          [](const std::vector<Tensor>& dys, std::span<const Tensor>) -> Gradients {
                            CHECK_FALSE(dys[0].defined());
                            return {dys[1]};
                          });
  tape.backward(product(both[1], Tensor::scalar(4)));
  CHECK(a.grad().item() == 4);
}

TEST_CASE("a chain of a million ops records, replays and frees on an 8 MB stack") {
  rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  CHECK(limit.rlim_cur <= (8u << 20));
  const int length = test::on_cuda() ? 20'000 : 1'000'000;  // launches take their time where a GPU is emulated
  Variable a = leaf(1);
  int64_t live = memory_stats(default_device()).live;
  {
    Tape tape;
    Variable y = a;
    for (int i = 0; i < length; ++i) y = plus(y, Tensor::scalar(0));
    tape.backward(y);
  }
  CHECK(a.grad().item() == 1);
  {
    Tape dropped;  // freed without a backward
    Variable y = a;
    for (int i = 0; i < length; ++i) y = product(y, a);
  }
  a.clear_grad();
  CHECK(memory_stats(default_device()).live == live);
}

TEST_CASE("dtype and place of requires_grad are checked") {
  CHECK_THROWS_AS(Variable::leaf(Tensor::arange(3)), Error);
  Variable a = leaf(1);
  Tape tape;
  Variable y = product(a, a);
  CHECK_THROWS_AS(y.set_requires_grad(true), Error);
  CHECK_FALSE(y.detach().requires_grad());
  CHECK_THROWS_AS(Variable().value(), Error);
  CHECK_THROWS_WITH_AS(Variable::leaf(Tensor()),
                       "leaf: the tensor is undefined; make it with a factory such as Tensor::zeros", Error);
}

TEST_CASE("gradients of another shape or dtype are refused, wherever they come from") {
  Variable a = leaf(1);
  {
    Tape tape;
    Variable y = record("wide", Tensor::scalar(1), {a}, keep(),
                        [](const Tensor& dy) -> Gradients { return {dy.to(Dtype::f64)}; });
    CHECK_THROWS_WITH_AS(tape.backward(y), "wide: backward gave a gradient f64 () for input 0, which is f32 ()", Error);
  }
  a.mutable_grad() = Tensor::zeros({3});
  Tape tape;
  Variable y = product(a, a);
  CHECK_THROWS_WITH_AS(tape.backward(y), "backward: a leaf f32 () holds a gradient f32 (3) already; clear it first",
                       Error);
}

TEST_CASE("an op without outputs is refused") {
  Variable a = leaf(1);
  Tape tape;
  CHECK_THROWS_WITH_AS(record_many("none", {}, std::span(&a, 1), {}, nullptr), "none: no output given to record",
                       Error);
}

TEST_CASE("a tape that ends on another thread, or out of order, leaves the others as they were") {
  Variable a = leaf(2);
  const int64_t live = memory_stats(default_device()).live;
  Tape outer;
  auto first = std::make_unique<Tape>(), second = std::make_unique<Tape>();
  product(a, a);
  CHECK(second->bytes_kept() > 0);
  first.reset();
  std::thread([&] { second.reset(); }).join();
  CHECK(memory_stats(default_device()).live == live);
  CHECK(recording());
  outer.backward(product(a, a));
  CHECK(a.grad().item() == 4);
}

TEST_CASE("a pause ends on the tape that it began on") {
  Tape outer;
  auto pause = std::make_unique<Tape::Pause>();
  CHECK_FALSE(recording());
  Tape inner;
  CHECK(recording());
  {
    Tape::Pause nested;
    pause.reset();
    CHECK_FALSE(recording());
  }
  CHECK(recording());
}

TEST_CASE("a pause does not train, and an op's name need not live on") {
  Variable a = leaf(3);
  Tape tape;
  CHECK(training());
  {
    Tape::Pause pause;
    CHECK_FALSE(training());
  }
  CHECK(training());
  {
    const std::string name = "a name that lives as long as this block, and \"has\" a \\ in it, and is longer than most";
    record(name.c_str(), a.value().clone(), {a}, keep(), [](const Tensor& dy) -> Gradients { return {dy}; });
    product(a, a);
  }
  const TapeReport report = tape.report();
  std::istringstream table(report.table());
  size_t width = 0, lines = 0;
  for (std::string line; std::getline(table, line); ++lines) {
    if (lines == 0) width = line.size();
    CHECK(line.size() == width);
  }
  CHECK(lines == 4);
  CHECK(report.table().find(report.rows[0].op) != std::string::npos);
  CHECK(report.dot().find("and \\\"has\\\" a \\\\ in it") != std::string::npos);
}

TEST_CASE("a tensor that was changed is found before any gradient has moved") {
  Variable a = leaf(2), b = leaf(5), c = leaf(7);
  Tape tape;
  Variable y = product(a, a), other = product(c, c);
  const Variable loss = product(y, b);
  Tensor x = a.value();
  x.fill(9);
  CHECK_THROWS_WITH_AS(tape.backward(loss),
                       "product: a tensor of shape () that it kept for backward was changed since; change a clone() of "
                       "it instead",
                       Error);
  CHECK_FALSE(a.grad().defined());
  CHECK_FALSE(b.grad().defined());
  tape.backward(other);  // which does not need it
  CHECK(c.grad().item() == 14);
}
