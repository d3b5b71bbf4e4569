// What an optimizer checks before anything moves or counts.
#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/ops/elementwise.h"
#include "linnet/optim/adam.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/sgd.h"

using namespace linnet;

namespace {

Variable leaf(const std::string& name, const Tensor& value = Tensor::zeros({2})) { return Variable::leaf(value, name); }
void give(Variable& w) { w.mutable_grad() = Tensor::full(w.shape(), 1, w.dtype()); }

}  // namespace

TEST_CASE("a parameter that its state does not fit any more is refused before anything moves") {
  Variable w = leaf("w"), other = leaf("other");
  optim::RAdam optimizer({other, w});
  give(w), give(other);
  optimizer.step();
  const std::vector<float> before = other.value().to_vector<float>();
  w.mutable_value() = Tensor::zeros({5000});
  give(w);
  CHECK_THROWS_WITH_AS(optimizer.step(),
                       "radam: parameter \"w\" is f32 (5000), its state \"m\" f32 (2); make a new optimizer", Error);
  w.mutable_value() = Tensor::zeros({2}, Dtype::i32);
  give(w);
  CHECK_THROWS_WITH_AS(optimizer.step(), "radam: parameter \"w\" is i32, f32 or f64 wanted", Error);
  CHECK(other.value().to_vector<float>() == before);
  CHECK(optimizer.state_dict().integer("other.step") == 1);
  CHECK(optimizer.state_dict().integer("w.step") == 1);
  w.mutable_value() = Tensor::zeros({2}, Dtype::f64);  // the model became f64: the state follows
  give(w);
  optimizer.step();
  CHECK(optimizer.state_dict().get("w.m").dtype() == Dtype::f64);
}

TEST_CASE("memory is shared as a whole or not at all, and stays shared") {
  const Tensor t = Tensor::zeros({6});
  const Variable a = leaf("a", t.slice(0, 4)), b = leaf("b", t.slice(2, 6)), c = leaf("c", t.slice(0, 2));
  const char* const message =
      "sgd: parameters \"a\" (4) and \"b\" (4) share part of their memory, all or nothing wanted";
  CHECK_THROWS_WITH_AS(optim::SGD({a, b}), message, Error);
  CHECK_THROWS_WITH_AS(optim::SGD({a, c}), doctest::Contains("share part"), Error);
  optim::SGD apart({c, b});

  Variable whole = leaf("whole", t), again = leaf("again", t);
  optim::SGD tied({whole, again}, {.lr = 1});
  again.mutable_value() = t.clone();
  give(whole), give(again);
  CHECK_THROWS_WITH_AS(
      tied.step(), "sgd: parameter \"whole\" no longer shares its memory with \"again\"; make a new optimizer", Error);
  CHECK(whole.value().to_vector<float>()[0] == 0);
}

TEST_CASE("only leaves are parameters, and a mean of squares is not negative") {
  Variable w = leaf("w");
  {
    Tape tape;
    CHECK_THROWS_WITH_AS(optim::SGD({w * w}),
                         "sgd: parameter \"parameter0\" was computed by an op; a leaf is wanted (Variable::leaf)",
                         Error);
  }
  optim::Adam adam({w});
  give(w);
  adam.step();
  StateDict changed;
  const StateDict saved = adam.state_dict();
  for (const auto& [name, value] : saved.tensors()) changed.set(name, Tensor::full({2}, -1));
  for (const auto& [name, text] : saved.texts()) changed.set_text(name, text);
  CHECK_THROWS_WITH_AS(adam.load_state_dict(changed),
                       "adam: the state does not fit; w.v, a mean of squares, has a value below 0", Error);
}
