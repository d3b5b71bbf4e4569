#include "linnet/nn/features.h"

#include <doctest/doctest.h>

#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"
#include "linnet/nn/cross_attention.h"
#include "linnet/ops/reduce.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using nn::AttentionKind;
using nn::Features;
using test::AttentionCase;
using test::deviation;
using test::message_of;

namespace {

struct Net : nn::Model {
  nn::Attention attention;
  explicit Net(const Features& features, AttentionKind kind = AttentionKind::linear, double weights = 0.5)
      : attention(*this, "attention", {.dim = 8, .heads = 2, .causal = true, .kind = kind, .feature_map = features}) {
    test::randomise(*this, weights);
  }
};

Tensor projections(const nn::Module& net) { return net.state_dict().get("attention.features.projections"); }

}  // namespace

TEST_CASE("features: how many a map makes, and which of them have projections") {
  const auto rows = [](const Features& features) { return Net(features).attention.make_state(3).linear.s.shape(); };
  CHECK(rows(FeatureMap::relu) == Shape{3, 2, 4, 4});
  CHECK(rows(Features::squared_relu()) == Shape{3, 2, 4, 4});
  CHECK(rows(Features::polynomial()) == Shape{3, 2, 10, 4});
  CHECK(rows(Features::fourier()) == Shape{3, 2, 8, 4});
  CHECK(rows(Features::fourier(6)) == Shape{3, 2, 6, 4});
  CHECK(rows(Features::favor()) == Shape{3, 2, 8, 4});
  CHECK(rows(Features::favor(7)) == Shape{3, 2, 7, 4});
  CHECK(rows(Features::own([](const Variable& x) {
          return concat({exp(x), exp(x), exp(x)}, -1);
        })) == Shape{3, 2, 12, 4});
  CHECK(projections(Net(Features::fourier(6))).shape() == Shape{3, 4});
  CHECK(projections(Net(Features::favor(7))).shape() == Shape{7, 4});
  for (const Features& none : {Features(FeatureMap::relu), Features::squared_relu(), Features::polynomial()})
    CHECK(Net(none).named_buffers().empty());
  CHECK_FALSE(Net(Features::favor(), AttentionKind::softmax).attention.features.has_value());
}

TEST_CASE("features: gradients through attention and through cross attention, in f64") {
  for (const AttentionCase& each : test::feature_cases()) {
    CAPTURE(each.name);
    nn::Model root;
    nn::Attention self(root, "self", {.dim = 4, .heads = 2, .causal = true, .feature_map = each.features});
    nn::CrossAttention cross(root, "cross", {.dim = 4, .heads = 2, .feature_map = each.features});
    test::randomise(root, 0.4);
    root.to(Dtype::f64);
    const Tensor x = test::normal({2, 3, 4}, 3, Dtype::f64), memory = test::normal({2, 2, 4}, 4, Dtype::f64);
    CHECK_NOTHROW(gradcheck([&](const std::vector<Variable>& v) { return cross(self(v[0]), v[1]); }, {x, memory}));
  }
}

TEST_CASE("features: with many random ones FAVOR+ comes near softmax attention, at its scale") {
  const Generator before = default_generator();
  Net softmax(FeatureMap::elu1, AttentionKind::softmax, 0.25), uniform(FeatureMap::elu1, AttentionKind::softmax, 0.25);
  uniform.attention.qkv.weight.mutable_value().slice(0, 8).fill(0);
  const Tensor x = test::normal({2, 12, 8});
  const Tensor wanted = softmax.attention(x).value();
  const double uniformly = deviation(uniform.attention(x).value(), wanted);  // what the weights of the keys are worth
  constexpr uint64_t kDraws = 6;
  const auto error = [&](int64_t count) {  // the mean of several draws: one alone may be lucky
    double sum = 0;
    for (uint64_t seed = 0; seed < kDraws; ++seed) {
      manual_seed(seed);
      Net net(Features::favor(count));
      net.load_state_dict(softmax.state_dict(), {.strict = false});
      sum += deviation(net.attention(x).value(), wanted);
    }
    return sum / kDraws;
  };
  const double few = error(64), many = error(16384);
  default_generator() = before;
  CAPTURE(uniformly);
  CAPTURE(few);
  CAPTURE(many);
  CHECK(many < uniformly / 6);
  CHECK(many < few / 3);
}

TEST_CASE("features: projections are drawn from seed and name, saved, loaded and drawn anew") {
  test::TemporaryFile file("features.safetensors");
  const Generator before = default_generator();
  const Tensor x = test::normal({2, 6, 8});
  for (const Features& features : {Features::favor(), Features::fourier(64)}) {
    manual_seed(1);
    Net first(features), again(features);
    manual_seed(2);
    Net other(features);
    CHECK(test::same_bits(projections(again), projections(first)));
    CHECK_FALSE(test::same_bits(projections(other), projections(first)));
    const Tensor y = first.attention(x).value();
    CHECK_FALSE(test::same_bits(other.attention(x).value(), y));
    save_safetensors(file.path(), first.state_dict());
    other.load_state_dict(load_safetensors(file.path()));
    CHECK(test::same_bits(other.attention(x).value(), y));
    CHECK(message_of([&] { Net(Features::favor(5)).load_state_dict(first.state_dict()); }) != "");

    Generator generator{3, 0, 0}, same = generator;
    nn::redraw_features(first, generator);
    nn::redraw_features(again, same);
    CHECK(generator.offset > 0);
    CHECK(test::same_bits(projections(again), projections(first)));
    CHECK_FALSE(test::same_bits(projections(other), projections(first)));
    CHECK_FALSE(test::same_bits(first.attention(x).value(), y));
    nn::redraw_features(first, generator);
    CHECK_FALSE(test::same_bits(projections(again), projections(first)));
  }
  Net plain(Features::squared_relu());
  Generator generator{3, 0, 0};
  nn::redraw_features(plain, generator);
  CHECK(generator.offset == 0);
  default_generator() = before;
}

TEST_CASE("SA11, SA12: no forward pass draws projections, and a layer that never ran takes those of a file") {
  test::TemporaryFile file("projections.safetensors");
  const Generator before_all = default_generator();
  const Tensor x = test::normal({2, 6, 8});
  for (const Features& features : {Features::favor(), Features::fourier(64)}) {
    manual_seed(1);
    Net net(features);
    const Tensor before = projections(net).clone(), y = net.attention(x).value();
    CHECK(test::same_bits(net.attention(x).value(), y));
    {
      Tape tape({.training = true});
      CHECK(test::same_bits(net.attention(x).value(), y));
    }
    CHECK(test::same_bits(projections(net), before));
    save_safetensors(file.path(), net.state_dict());
    manual_seed(2);
    Net fresh(features);
    CHECK_FALSE(test::same_bits(projections(fresh), before));
    fresh.load_state_dict(load_safetensors(file.path()));
    CHECK(test::same_bits(fresh.attention(x).value(), y));
  }
  default_generator() = before_all;
}

TEST_CASE("features: large inputs give finite outputs") {
  for (const Features& features : {Features::favor(), Features::fourier(64)}) {
    Net net(features);
    for (const double scale : {30.0, 1e4}) {
      const Tensor x = compute::scale(test::normal({1, 20, 8}), scale);
      CHECK(compute::all_finite(net.attention(x).value()));
    }
  }
}

TEST_CASE("features: a word names a map") {
  const Tensor x = test::normal({1, 5, 8});
  for (const char* word : {"elu1", "relu", "identity", "squared_relu", "polynomial", "fourier", "favor"}) {
    CAPTURE(word);
    CHECK(Net(nn::feature_map(word)).attention(x).shape() == x.shape());
  }
  CHECK(nn::feature_map("relu").fused == FeatureMap::relu);
  CHECK(nn::feature_map("favor").kind == Features::Kind::favor);
  CHECK(message_of([&] { nn::feature_map("magic"); }) ==
        "feature map magic: must be elu1, relu, identity, squared_relu, polynomial, fourier or favor");
}

TEST_CASE("features: errors name the layer") {
  CHECK(message_of([&] { Net net(Features::fourier(7)); }) ==
        "FeatureLayer attention.features: 7 Fourier features given, an even number wanted: a cosine and a sine of each "
        "projection");
  CHECK(message_of([&] { Net net(Features::favor(-1)); }) ==
        "FeatureLayer attention.features: -1 features given, 1 or more wanted, or 0 for 2 D");
  CHECK_THROWS_AS(Net(Features::favor(int64_t{1} << 61)), Error);
  CHECK_THROWS_AS(Net(Features::fourier(INT64_MAX - 1)), Error);
  CHECK(message_of([&] { Net net(Features::own({})); }) == "FeatureLayer attention.features: no map given");
  const Tensor x = test::normal({2, 6, 8});
  Net flat(Features::own([](const Variable& rows) { return sum(rows, {-1}); }));
  CHECK(message_of([&] { flat.attention(x); }) ==
        "FeatureLayer attention.features: the map gave (2, 6, 2) for (2, 6, 2, 4), only the last size may differ");
  CHECK_THROWS_WITH(flat.attention.make_state(2), doctest::Contains("only the last size may differ"));
  Net net(Features::favor());
  auto state = Net(Features::favor(5)).attention.make_state(2);
  CHECK(message_of([&] {
          net.attention.step(Tensor::zeros({2, 8}), state);
        }) == "Attention attention: state s f32 (2, 2, 5, 4) given, f32 (2, 2, 8, 4) wanted");
}
