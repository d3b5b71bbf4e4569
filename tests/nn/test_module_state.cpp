#include <doctest/doctest.h>

#include "linnet/core/checkpoint.h"
#include "linnet/core/safetensors.h"
#include "linnet/nn/embedding.h"
#include "linnet/nn/linear.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using test::message_of;

namespace {

struct Net : nn::Model {
  nn::Embedding embed{*this, "embed", {.rows = 3, .dim = 2}};
  nn::Linear hidden{*this, "hidden", {.in = 2, .out = 2}};
  nn::Linear head{*this, "head", {.in = 2, .out = 3, .bias = false, .tied = embed.weight}};
  Tensor& seen = buffer("seen", Tensor::full({1}, 5, Dtype::i32));
};

/// The net's state with one tensor's name or value changed; an empty name leaves it out.
StateDict changed(const StateDict& state, const std::string& from, const std::string& to, Tensor value = {}) {
  StateDict result;
  for (const auto& [name, tensor] : state.tensors()) {
    if (name != from) {
      result.set(name, tensor);
    } else if (!to.empty()) {
      result.set(to, value.defined() ? value : tensor);
    }
  }
  return result;
}

bool same_state(const StateDict& a, const StateDict& b) {
  bool same = a.tensors().size() == b.tensors().size();
  for (const auto& [name, value] : a.tensors()) same = same && b.has(name) && test::same_bits(value, b.get(name));
  return same;
}

}  // namespace

TEST_CASE("state_dict holds parameters and buffers, tied ones once") {
  Net net;
  const StateDict state = net.state_dict();
  std::vector<std::string> names;
  for (const auto& [name, value] : state.tensors()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"embed.weight", "hidden.weight", "hidden.bias", "seen"});
  CHECK(state.text("head.weight") == "tied to embed.weight");
}

TEST_CASE("state_dict is a copy") {
  Net net;
  const StateDict before = net.state_dict();
  const Tensor weight = net.hidden.weight.value().clone();
  net.hidden.weight.mutable_value().fill(9);
  net.seen.fill(1);
  net.load_state_dict(before);
  CHECK(test::same_bits(net.hidden.weight.value(), weight));
  CHECK(net.seen.item() == 5);
}

TEST_CASE("a file gives back the same net, ties and buffers included") {
  test::TemporaryFile file("module.safetensors");
  Net saved, loaded;
  test::randomise(saved);
  saved.seen.fill(8);
  save_safetensors(file.path(), saved.state_dict());
  const nn::LoadReport report = loaded.load_state_dict(load_safetensors(file.path()));
  CHECK(report.missing.empty());
  CHECK(report.unexpected.empty());
  CHECK(same_state(saved.state_dict(), loaded.state_dict()));
  CHECK(loaded.head.weight.same_as(loaded.embed.weight));
  CHECK(loaded.seen.item() == 8);

  save_checkpoint(file.path(), {{"model", saved.state_dict()}});
  Net again;
  again.load_state_dict(load_checkpoint(file.path()).part("model"));
  CHECK(same_state(saved.state_dict(), again.state_dict()));
}

TEST_CASE("strict loading lists all that is wrong and changes nothing") {
  Net net;
  const StateDict state = net.state_dict();
  test::randomise(net);
  const StateDict before = net.state_dict();

  CHECK(message_of([&] { net.load_state_dict(changed(state, "hidden.bias", "hidden.offset")); }) ==
        "load_state_dict: missing: hidden.bias; unexpected: hidden.offset");
  CHECK(message_of([&] { net.load_state_dict(changed(state, "seen", "")); }) == "load_state_dict: missing: seen");
  CHECK(message_of([&] { net.load_state_dict(changed(state, "hidden.bias", "hidden.bias", Tensor::zeros({3}))); }) ==
        "load_state_dict: misshapen: hidden.bias is f32 (3), want f32 (2)");
  CHECK(message_of([&] { net.load_state_dict(changed(state, "seen", "seen", Tensor::zeros({1}))); }) ==
        "load_state_dict: misshapen: seen is f32 (1), want i32 (1)");
  StateDict all = changed(state, "embed.weight", "");
  all = changed(all, "hidden.weight", "");
  all = changed(all, "hidden.bias", "hidden.bias", Tensor::zeros({2, 2}));
  all.set("x", Tensor::zeros({1}));
  all.set("y", Tensor::zeros({1}));
  CHECK(message_of([&] { net.load_state_dict(all); }) ==
        "load_state_dict: missing: embed.weight, hidden.weight; unexpected: x, y; "
        "misshapen: hidden.bias is f32 (2, 2), want f32 (2)");
  CHECK(message_of([&] { net.load_state_dict(StateDict()); }) ==
        "load_state_dict: missing: embed.weight, hidden.weight, hidden.bias, seen");
  CHECK(same_state(net.state_dict(), before));
}

TEST_CASE("loading that is not strict says what it passed over; shapes still count") {
  Net net;
  const StateDict state = net.state_dict();
  const StateDict renamed = changed(state, "hidden.bias", "hidden.offset");
  const nn::LoadReport report = net.load_state_dict(renamed, {.strict = false});
  CHECK(report.missing == std::vector<std::string>{"hidden.bias"});
  CHECK(report.unexpected == std::vector<std::string>{"hidden.offset"});
  CHECK(message_of([&] {
          net.load_state_dict(changed(renamed, "hidden.weight", "hidden.weight", Tensor::zeros({3})),
                              {.strict = false});
        }) == "load_state_dict: misshapen: hidden.weight is f32 (3), want f32 (2, 2)");
}

TEST_CASE("a tied parameter may come under each of its names, with one value") {
  Net net;
  const StateDict state = net.state_dict();
  const Tensor value = Tensor::full({3, 2}, 4);
  net.load_state_dict(changed(state, "embed.weight", "head.weight", value));
  CHECK(test::same_bits(net.embed.weight.value(), value));
  StateDict both = net.state_dict();
  both.set("head.weight", value);
  net.load_state_dict(both);
  CHECK(message_of([&] {
          net.load_state_dict(changed(both, "head.weight", "head.weight", Tensor::zeros({3, 2})));
        }) == "load_state_dict: misshapen: head.weight is tied to embed.weight, but their values differ");
  CHECK(test::same_bits(net.embed.weight.value(), value));
}

TEST_CASE("f64 values load into an f32 net and the other way round") {
  Net single, twice;
  twice.to(Dtype::f64);
  test::randomise(twice);
  single.load_state_dict(twice.state_dict());
  CHECK(single.hidden.weight.dtype() == Dtype::f32);
  CHECK(test::same_bits(single.hidden.weight.value(), twice.hidden.weight.value().to(Dtype::f32)));
  twice.load_state_dict(single.state_dict());
  CHECK(twice.hidden.weight.dtype() == Dtype::f64);
  CHECK(test::same_bits(twice.hidden.weight.value(), single.hidden.weight.value().to(Dtype::f64)));
}

TEST_CASE("loading a hundred times takes no more memory than once") {
  Net net;
  const StateDict state = net.state_dict();
  net.load_state_dict(state);
  const int64_t live = memory_stats(default_device()).live;
  for (int i = 0; i < 100; ++i) net.load_state_dict(state);
  CHECK(memory_stats(default_device()).live == live);
}

TEST_CASE("values may come from the module's own memory") {
  nn::Model root;
  nn::Linear a(root, "a", {.in = 2, .out = 2, .bias = false}), b(root, "b", {.in = 2, .out = 2, .bias = false});
  a.weight.mutable_value().fill(1);
  b.weight.mutable_value().fill(2);
  StateDict exchanged;
  exchanged.set("a.weight", b.weight.value());
  exchanged.set("b.weight", a.weight.value());
  root.load_state_dict(exchanged);
  CHECK(a.weight.value().to_vector<float>()[0] == 2);
  CHECK(b.weight.value().to_vector<float>()[0] == 1);
}
