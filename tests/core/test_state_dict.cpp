#include "linnet/core/state_dict.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace linnet;

TEST_CASE("a state dict keeps its entries in order") {
  StateDict state;
  for (const char* name : {"z", "a", "m"}) state.set(name, Tensor::zeros({2}));
  state.set_text("note", "first");
  state.set_text("a", "a text may have a tensor's name");
  REQUIRE(state.tensors().size() == 3);
  CHECK(state.tensors()[0].first == "z");
  CHECK(state.tensors()[1].first == "a");
  CHECK(state.tensors()[2].first == "m");
  CHECK(state.has("m"));
  CHECK_FALSE(state.has("note"));
  CHECK(state.has_text("note"));
  CHECK(state.text("note") == "first");
}

TEST_CASE("numbers in a state dict read back to the same bits") {
  StateDict state;
  double values[] = {0.1, -0.0, 1e-320, 1.7976931348623157e308, std::numeric_limits<double>::infinity(), 1.0 / 3};
  for (size_t i = 0; i < std::size(values); ++i) state.set_number(std::to_string(i), values[i]);
  for (size_t i = 0; i < std::size(values); ++i) {
    CHECK(state.number(std::to_string(i)) == values[i]);
    CHECK(std::signbit(state.number(std::to_string(i))) == std::signbit(values[i]));
  }
  state.set_number("nan", std::nan(""));
  CHECK(std::isnan(state.number("nan")));
  state.set_integer("large", ~uint64_t(0));
  CHECK(state.integer("large") == ~uint64_t(0));
}

TEST_CASE("a state dict says what is missing, there already or of another kind") {
  StateDict state;
  state.set("w", Tensor::zeros({2}));
  state.set_text("t", "-1");
  CHECK_THROWS_WITH_AS(state.get("v"), "state_dict: no tensor \"v\" among 1", Error);
  CHECK_THROWS_WITH_AS(state.text("v"), "state_dict: no text \"v\" among 1", Error);
  CHECK_THROWS_WITH_AS(state.set("w", Tensor::zeros({2})), "state_dict: tensor \"w\" is there already", Error);
  CHECK_THROWS_WITH_AS(state.set_text("t", ""), "state_dict: text \"t\" is there already", Error);
  CHECK_THROWS_WITH_AS(state.set("v", Tensor()), "state_dict: the tensor given for \"v\" is undefined", Error);
  CHECK_THROWS_WITH_AS(state.integer("t"), "state_dict: \"t\" is \"-1\", an integer from 0 to 2^64-1 wanted", Error);
  CHECK(state.number("t") == -1);
  for (const char* text : {"", "1x", " 1", "one", "18446744073709551616"}) {
    StateDict other;
    other.set_text("n", text);
    CHECK_THROWS_AS(other.integer("n"), Error);
  }
  CHECK(state.tensors().size() == 1);
  CHECK(state.texts().size() == 1);
}

TEST_CASE("parts of a state dict come back under their prefix") {
  StateDict inner, state;
  inner.set("w", Tensor::full({2}, 3));
  inner.set_text("t", "text");
  state.add("model", inner);
  state.add("modelling", inner);
  CHECK(state.has("model.w"));
  StateDict part = state.part("model");
  REQUIRE(part.tensors().size() == 1);
  CHECK(part.get("w").shares_storage(inner.get("w")));
  CHECK(part.text("t") == "text");
  CHECK(state.part("none").tensors().empty());

  StateDict clash;
  clash.set("fresh", Tensor::zeros({1}));
  clash.set("w", Tensor::zeros({1}));
  CHECK_THROWS_WITH_AS(state.add("model", clash), "state_dict: tensor \"model.w\" is there already", Error);
  CHECK_FALSE(state.has("model.fresh"));
}

TEST_CASE("a clone is a snapshot; set shares memory; a temporary's entries do not dangle") {
  Tensor w = Tensor::full({2}, 1);
  StateDict state;
  state.set("w", w);
  StateDict snapshot = state.clone();
  w.fill(2);
  CHECK(state.get("w").to_vector<float>() == std::vector<float>{2, 2});
  CHECK(snapshot.get("w").to_vector<float>() == std::vector<float>{1, 1});
  for (const auto& [name, tensor] : StateDict(state).tensors()) CHECK(tensor.to_vector<float>()[0] == 2);
  const Tensor& kept = StateDict(state).get("w");
  CHECK(kept.numel() == 2);
}
