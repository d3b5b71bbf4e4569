#include "linnet/optim/optimizer.h"

#include <doctest/doctest.h>

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "linnet/optim/adam.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/sgd.h"

using namespace linnet;

namespace {

Variable leaf(const std::string& name, int64_t n = 1) { return Variable::leaf(Tensor::full({n}, 1, Dtype::f64), name); }
void give(Variable& w, double gradient) { w.mutable_grad() = Tensor::full(w.shape(), gradient, Dtype::f64); }

}  // namespace

TEST_CASE("every optimizer finds the bottom of a quadratic") {
  auto descend = [](auto make) {
    Variable x = Variable::leaf(Tensor::from<double>({-4, 0, 10}, {3}), "x");
    auto optimizer = make(x);
    for (int i = 0; i < 2000; ++i) {
      Tape tape;
      tape.backward(sum(square(x - 3.0)));
      optimizer.step();
      optimizer.clear_grads();
    }
    for (double value : x.value().to_vector<double>()) CHECK(std::abs(value - 3) < 1e-2);
  };
  descend([](Variable& x) { return optim::RAdam({x}, {.lr = .03}); });
  descend([](Variable& x) { return optim::Adam({x}, {.lr = .03}); });
  descend([](Variable& x) { return optim::AdamW({x}, {.lr = .03, .weight_decay = 0}); });
  descend([](Variable& x) { return optim::SGD({x}, {.lr = .03, .momentum = .9}); });
}

TEST_CASE("a step without any gradient asks for a tape") {
  Variable w = leaf("w");
  optim::RAdam optimizer({w});
  CHECK_THROWS_WITH_AS(optimizer.step(),
                       "radam: no parameter has a gradient; was a Tape in scope when the loss was computed, and was "
                       "tape.backward(loss) called?",
                       Error);
  give(w, 1);
  optimizer.step();
  optimizer.clear_grads();
  CHECK_FALSE(w.grad().defined());
  CHECK_THROWS_AS(optimizer.step(), Error);
}

TEST_CASE("a parameter without a gradient stays, and its step count stands still") {
  Variable a = leaf("a"), b = leaf("b");
  optim::RAdam optimizer({a, b});
  for (int i = 0; i < 7; ++i) {
    give(a, 1);
    if (i < 2) give(b, 1);
    optimizer.step();
    optimizer.clear_grads();
  }
  CHECK(optimizer.state_dict().integer("a.step") == 7);
  CHECK(optimizer.state_dict().integer("b.step") == 2);
  CHECK(b.item() == .998);
}

TEST_CASE("tied parameters move once, by the sum of their gradients") {
  Variable w = leaf("w", 2), again = w, view = Variable::leaf(w.value().reshape({2, 1}), "view");
  optim::SGD optimizer({w, again, view}, {.lr = .1});
  give(w, 1);
  optimizer.step();
  CHECK(w.value().to_vector<double>() == std::vector<double>{.9, .9});
  give(view, 2);
  optimizer.step();
  CHECK(std::abs(w.value().to_vector<double>()[0] - .6) < 1e-15);
  CHECK(w.grad().to_vector<double>()[0] == 1);
  CHECK(optimizer.state_dict().texts().size() == 4);  // optimizer, lr, lr_factor and one step count
  optimizer.clear_grads();
  CHECK_FALSE(view.grad().defined());
}

TEST_CASE("what is given is checked before anything moves") {
  Variable a = leaf("a"), b = leaf("b", 2), whole = leaf("whole", 2);
  CHECK_THROWS_WITH_AS(optim::Adam(std::vector<Variable>{}), "adam: no parameters given", Error);
  CHECK_THROWS_WITH_AS(optim::Adam({a, Variable()}), "adam: parameter 1 is undefined", Error);
  CHECK_THROWS_WITH_AS(optim::Adam({Variable(Tensor::zeros({1}, Dtype::i32))}),
                       "adam: parameter \"parameter0\" is i32, f32 or f64 wanted", Error);
  CHECK_THROWS_WITH_AS(optim::Adam(std::vector<optim::ParameterGroup>{{.parameters = {a}}, {.parameters = {b, a}}}),
                       "adam: parameter \"a\" is in group 0 and in group 1", Error);
  CHECK_THROWS_WITH_AS(
      optim::Adam({whole, Variable::leaf(whole.value().slice(0, 1), "part")}),
      "adam: parameters \"whole\" (2) and \"part\" (1) share part of their memory, all or nothing wanted", Error);
  optim::Adam optimizer({a, b});
  give(a, 1);
  b.mutable_grad() = Tensor::zeros({3}, Dtype::f64);
  const std::string device = name(default_device());
  const std::string message = "adam: parameter \"b\" is f64 (2) on " + device + ", its gradient f64 (3) on " + device;
  CHECK_THROWS_WITH_AS(optimizer.step(), message.c_str(), Error);
  CHECK(a.item() == 1);
  CHECK(optimizer.state_dict().integer("a.step") == 0);
}

TEST_CASE("a saved state names its parameters; it is a snapshot") {
  Variable named = leaf("layer.weight"), nameless = leaf(""), twin = leaf("layer.weight");
  optim::RAdam optimizer({named, nameless, twin});
  for (Variable* w : {&named, &nameless, &twin}) give(*w, 1);
  optimizer.step();
  StateDict state = optimizer.state_dict();
  for (const char* name : {"layer.weight.m", "layer.weight.v", "parameter1.m", "layer.weight#2.v"})
    CHECK(state.has(name));
  double m = state.get("parameter1.m").item();
  optimizer.step();
  CHECK(state.get("parameter1.m").item() == m);
}

TEST_CASE("loading lists what does not fit and changes nothing then") {
  Variable a = leaf("a"), b = leaf("b", 2);
  optim::RAdam optimizer({a, b});
  give(a, 1);
  give(b, 1);
  optimizer.step();
  StateDict before = optimizer.state_dict();

  StateDict wrong;
  wrong.set_text("optimizer", "radam");
  wrong.set_number("lr", 5);
  wrong.set_number("lr_factor", 1);
  wrong.set_integer("a.step", 3);
  wrong.set("a.m", Tensor::zeros({1}, Dtype::f64));
  wrong.set("a.v", Tensor::zeros({1}));
  wrong.set_integer("b.step", 3);
  wrong.set("b.m", Tensor::zeros({4}, Dtype::f64));
  wrong.set("c.m", Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(optimizer.load_state_dict(wrong),
                       "radam: the state does not fit; a.v is f32 (1), wanted f64 (1); b.m is f64 (4), wanted f64 (2); "
                       "missing: b.v; unexpected: c.m",
                       Error);
  CHECK_THROWS_WITH_AS(optimizer.load_state_dict(optim::Adam({a, b}).state_dict()), "radam: the state is one of adam",
                       Error);
  CHECK_THROWS_AS(optimizer.load_state_dict(StateDict()), Error);
  StateDict after = optimizer.state_dict();
  CHECK(after.texts() == before.texts());
  CHECK(after.get("a.m").item() == before.get("a.m").item());
  optimizer.load_state_dict(before);
}

TEST_CASE("CK8: loading a hundred times appends nothing and shares nothing") {
  Variable w = leaf("w", 1000);
  optim::RAdam optimizer({w});
  give(w, 1);
  optimizer.step();
  StateDict state = optimizer.state_dict();
  optimizer.load_state_dict(state);
  int64_t live = memory_stats(default_device()).live;
  size_t size = optimizer.state_dict().tensors().size();
  for (int i = 0; i < 100; ++i) optimizer.load_state_dict(state);
  CHECK(memory_stats(default_device()).live == live);
  CHECK(optimizer.state_dict().tensors().size() == size);
  double m = state.get("w.m").to_vector<double>()[0];
  optimizer.step();
  CHECK(state.get("w.m").to_vector<double>()[0] == m);
}

TEST_CASE("the rate: set by hand, by a factor, a group's own; all of it is saved") {
  Variable a = leaf("a"), b = leaf("b");
  std::vector<optim::ParameterGroup> groups = {{.parameters = {a}}, {.parameters = {b}, .lr = 1}};
  optim::SGD optimizer(groups, {.lr = .5});
  optimizer.set_lr_factor(.5);
  CHECK(optimizer.lr() == .25);
  give(a, 1);
  give(b, 1);
  optimizer.step();
  CHECK(a.item() == .75);
  CHECK(b.item() == .5);
  optimizer.set_lr(.125);
  CHECK(optimizer.lr() == .125);
  optimizer.set_lr_factor(.5);
  optim::SGD other(groups, {.lr = 9});
  other.load_state_dict(optimizer.state_dict());
  CHECK(other.lr() == .0625);
  CHECK(other.lr_factor() == .5);
  CHECK_THROWS_WITH_AS(optimizer.set_lr(-1), "sgd: lr -1 given, wanted: at least 0 and below inf", Error);
  CHECK(optimizer.lr() == .0625);
}

TEST_CASE("the state follows a model whose dtype changed") {
  Variable w = leaf("w");
  optim::RAdam optimizer({w});
  give(w, 1);
  optimizer.step();
  w.mutable_value() = w.value().to(Dtype::f32);
  w.mutable_grad() = Tensor::full({1}, 1);
  optimizer.step();
  CHECK(optimizer.state_dict().get("w.m").dtype() == Dtype::f32);
  CHECK(std::abs(w.item() - .998) < 1e-6);
}
