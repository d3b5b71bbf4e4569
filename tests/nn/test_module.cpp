#include "linnet/nn/module.h"

#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "linnet/autograd/tape.h"
#include "linnet/nn/embedding.h"
#include "linnet/nn/linear.h"
#include "linnet/nn/list.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/reduce.h"
#include "linnet/optim/sgd.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using test::message_of;

namespace {

struct Inner : nn::Module {
  struct Options {};
  Inner(nn::Module& parent, std::string name, const Options& = {}) : Module(parent, std::move(name)) {}
  nn::Linear first{*this, "first", {.in = 2, .out = 3}};
  nn::Linear second{*this, "second", {.in = 3, .out = 2, .bias = false}};
};

struct Net : nn::Model {
  Variable scale = parameter("scale", {2}, nn::init::constant(4));
  Tensor& mean = buffer("mean", Tensor::full({2}, 7));
  Inner inner{*this, "inner"};
  nn::List<Inner> more{*this, "more", 2, {}};
};

struct Tied : nn::Model {
  nn::Linear a{*this, "a", {.in = 1, .out = 1, .bias = false}};
  nn::Linear b{*this, "b", {.in = 1, .out = 1, .bias = false, .tied = a.weight}};
};

struct TwoNames : nn::Model {
  TwoNames(std::string first, std::string second) {
    one.emplace(*this, first, nn::LinearOptions{.in = 1, .out = 1});
    two.emplace(*this, second, nn::LinearOptions{.in = 1, .out = 1});
  }
  std::optional<nn::Linear> one, two;
};

struct OwnNames : nn::Model {
  OwnNames() { parameter("x", {1}, nn::init::zeros()); }
  void again() { parameter("x", {1}, nn::init::zeros()); }
  void as_buffer() { buffer("x", Tensor::zeros({1})); }
  void as_tie(Variable v) { tie("x", v); }
  void wrong_init() {
    parameter("y", {2}, [](const Shape&, Generator&) { return Tensor::zeros({3}); });
  }
  void undefined_buffer() { buffer("z", Tensor()); }
};

std::vector<std::string> names(const nn::Module& module) {
  std::vector<std::string> all;
  for (const auto& [name, value] : module.named_parameters()) all.push_back(name);
  return all;
}

// A module cannot be made, and so not be declared as a member, without a parent and a name; nor copied or moved.
static_assert(!std::is_default_constructible_v<nn::Module>);
static_assert(!std::is_default_constructible_v<nn::Linear>);
static_assert(!std::is_constructible_v<nn::Linear, nn::LinearOptions>);
static_assert(!std::is_constructible_v<nn::Linear, std::string, nn::LinearOptions>);
static_assert(std::is_constructible_v<nn::Linear, nn::Module&, std::string, nn::LinearOptions>);
static_assert(!std::is_copy_constructible_v<nn::Linear> && !std::is_move_constructible_v<nn::Linear>);
static_assert(!std::is_copy_constructible_v<Net> && !std::is_copy_assignable_v<Net> && !std::is_move_assignable_v<Net>);
static_assert(std::is_default_constructible_v<nn::Model>);

}  // namespace

TEST_CASE("names are dotted, parents before parts, in the order of declaration") {
  Net net;
  CHECK(names(net) == std::vector<std::string>{"scale", "inner.first.weight", "inner.first.bias", "inner.second.weight",
                                               "more.0.first.weight", "more.0.first.bias", "more.0.second.weight",
                                               "more.1.first.weight", "more.1.first.bias", "more.1.second.weight"});
  CHECK(names(net.inner) == std::vector<std::string>{"first.weight", "first.bias", "second.weight"});
  CHECK(net.more[1].first.weight.name() == "more.1.first.weight");
  CHECK(net.more[1].first.path() == "more.1.first");
  CHECK(net.path() == "");
  CHECK(net.more[1].first.label() == "Linear more.1.first");
  CHECK(net.label() == "Net");
  CHECK(net.more.kind() == "List");
  REQUIRE(net.named_buffers().size() == 1);
  CHECK(net.named_buffers()[0].first == "mean");
  CHECK(net.parameter_count() == 2 + 3 * (6 + 3 + 6));
  CHECK(net.children().size() == 2);
  REQUIRE(net.modules().size() == 1 + 3 + 1 + 2 * 3);
  CHECK(net.modules()[0].first == "");
  CHECK(net.modules()[1].first == "inner");
  CHECK(net.modules()[2].first == "inner.first");
}

namespace {
template <class T>
std::string kind_of_a_local_class() {
  struct Local : nn::Model {
  } local;
  return local.kind();
}
template <class T>
struct Holder : nn::Model {};
}  // namespace

TEST_CASE("kind is the class without its namespaces and arguments, wherever it is declared") {
  CHECK(kind_of_a_local_class<std::vector<int>>() == "Local");
  CHECK(Holder<std::vector<std::pair<int, nn::Linear*>>>().kind() == "Holder");
  CHECK(nn::Model().kind() == "Model");
}

TEST_CASE("a name that is taken, empty or dotted is an error") {
  CHECK(message_of([] { TwoNames("a", "a"); }) == "TwoNames: two parts are named \"a\", want names that differ");
  CHECK(message_of([] { TwoNames("a", ""); }) ==
        "TwoNames: \"\" is no name for a part, want one without dots that is not empty");
  CHECK(message_of([] { TwoNames("a.b", "c"); }) ==
        "TwoNames: \"a.b\" is no name for a part, want one without dots that is not empty");
  OwnNames own;
  const std::string taken = "OwnNames: two parts are named \"x\", want names that differ";
  CHECK(message_of([&] { own.again(); }) == taken);
  CHECK(message_of([&] { own.as_buffer(); }) == taken);
  CHECK(message_of([&] { own.as_tie(own.parameters()[0]); }) == taken);
  CHECK(message_of([&] { nn::Linear linear(own, "x", {.in = 1, .out = 1}); }) == taken);
  CHECK(message_of([&] { own.wrong_init(); }) == "y: init made f32 (3), want f32 (2)");
  CHECK(message_of([&] { own.undefined_buffer(); }) == "z: a buffer wants a tensor, this one is undefined");
  CHECK(own.parameter_count() == 1);
}

TEST_CASE("a part that ends leaves its parent, and may outlive it") {
  auto net = std::make_unique<nn::Model>();
  auto part = std::make_unique<nn::Linear>(*net, "part", nn::LinearOptions{.in = 1, .out = 1});
  CHECK(net->parameter_count() == 2);
  part.reset();
  CHECK(net->parameter_count() == 0);
  part = std::make_unique<nn::Linear>(*net, "part", nn::LinearOptions{.in = 1, .out = 1});
  net.reset();
  CHECK(part->parameter_count() == 2);
  CHECK(part->path() == "part");
}

TEST_CASE("initial weights depend on the seed and the dotted name, and on nothing else") {
  const Generator before = default_generator();
  manual_seed(11);
  Net a;
  CHECK(default_generator().offset == 0);  // they take nothing from the default generator
  Tensor::uniform({5});
  Net b;
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    CHECK(test::same_bits(a.parameters()[i].value(), b.parameters()[i].value()));
  }
  CHECK_FALSE(test::same_bits(a.more[0].first.weight.value(), a.more[1].first.weight.value()));
  CHECK_FALSE(test::same_bits(a.inner.first.weight.value(), a.more[0].first.weight.value()));
  manual_seed(12);
  Net c;
  CHECK_FALSE(test::same_bits(a.inner.first.weight.value(), c.inner.first.weight.value()));
  default_generator() = before;
}

TEST_CASE("a tied weight gets the sum of the gradients, moves once and counts once") {
  Tied net;
  net.a.weight.mutable_value().fill(2);
  optim::SGD sgd(net.parameters(), {.lr = 0.1});
  {
    Tape tape;
    const Variable y = net.a(Tensor::full({1, 1}, 2)) + net.b(Tensor::full({1, 1}, 3));
    tape.backward(y);
  }
  CHECK(net.a.weight.grad().item() == 5);
  CHECK(net.b.weight.same_as(net.a.weight));
  sgd.step();
  CHECK(net.a.weight.item() == doctest::Approx(1.5).epsilon(1e-6));
  CHECK(net.b.weight.item() == net.a.weight.item());
  CHECK(net.parameter_count() == 1);
  CHECK(names(net) == std::vector<std::string>{"a.weight"});
  REQUIRE(net.tied_names().size() == 1);
  CHECK(net.tied_names()[0] == std::pair<std::string, std::string>{"b.weight", "a.weight"});
}

TEST_CASE("freezing stops gradients, here and below") {
  Net net;
  net.inner.set_requires_grad(false);
  Tape tape;
  tape.backward(sum(net.inner.second(net.inner.first(Tensor::full({1, 2}, 1) * net.scale))));
  CHECK_FALSE(net.inner.first.weight.grad().defined());
  CHECK(net.scale.grad().defined());
  CHECK_FALSE(net.inner.second.weight.requires_grad());
  CHECK(net.more[0].first.weight.requires_grad());
  net.set_requires_grad(true);
  CHECK(net.inner.second.weight.requires_grad());
  net.clear_grads();
  CHECK_FALSE(net.scale.grad().defined());
}

TEST_CASE("to(Dtype) converts parameters, gradients and floating buffers, tied ones together") {
  struct Typed : nn::Model {
    nn::Embedding embed{*this, "embed", {.rows = 3, .dim = 2}};
    nn::Linear head{*this, "head", {.in = 2, .out = 3, .tied = embed.weight}};
    Tensor& mean = buffer("mean", Tensor::full({2}, 7));
    Tensor& count = buffer("count", Tensor::full({}, 7, Dtype::i32));
  } net;
  {
    Tape tape;
    tape.backward(sum(net.head(Tensor::full({1, 2}, 1))));
  }
  net.to(Dtype::f64);
  CHECK(net.embed.weight.dtype() == Dtype::f64);
  CHECK(net.head.weight.same_as(net.embed.weight));
  CHECK(net.head.bias.grad().dtype() == Dtype::f64);
  CHECK(net.mean.dtype() == Dtype::f64);
  CHECK(net.count.dtype() == Dtype::i32);
  CHECK(net.head(Tensor::full({1, 2}, 1, Dtype::f64)).dtype() == Dtype::f64);
  CHECK(message_of([&] { net.to(Dtype::i32); }) == "Typed: cannot become i32, f32 or f64 wanted");
  net.to(Device::cpu);
  CHECK(net.mean.to_vector<double>() == std::vector<double>{7, 7});
}

TEST_CASE("a number of the wrong kind is an error that names the op") {
  Net net;
  CHECK_THROWS_WITH(net.inner.first(Tensor::zeros({4, 3})), doctest::Contains("linear: "));
  CHECK_THROWS_WITH(net.inner.first(Tensor::zeros({4, 2}, Dtype::f64)), doctest::Contains("linear: "));
}

TEST_CASE("an init that fails or fits not is named with its parameter; one that keeps its tensor is copied") {
  nn::Model root;
  const auto with = [&](const nn::Init& init) {
    return message_of([&] { nn::Linear(root, "l", {.in = 3, .out = 3, .weight_init = init}); });
  };
  using Made = nn::Init;
  CHECK(with(nn::init::normal(-1)) == "l.weight: normal: standard deviation -1 is negative");
  CHECK(with(Made([](const Shape&, Generator&) { return Tensor(); })) ==
        "l.weight: init made an undefined tensor, want f32 (3, 3)");
  CHECK(with(Made([](const Shape& s, Generator&) { return Tensor::zeros(s, Dtype::f64); })) ==
        "l.weight: init made f64 (3, 3), want f32 (3, 3)");
  const Tensor kept = Tensor::zeros({3, 3});
  const Made same = [&](const Shape&, Generator&) { return kept; };
  nn::Linear a(root, "a", {.in = 3, .out = 3, .weight_init = same});
  nn::Linear b(root, "b", {.in = 3, .out = 3, .weight_init = same});
  a.weight.mutable_value().fill(7);
  CHECK(b.weight.value().to_vector<float>()[0] == 0);
  CHECK(kept.to_vector<float>()[0] == 0);
}
