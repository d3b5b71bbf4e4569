#include "linnet/models/causal_lm.h"

#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/cross_entropy.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using models::CausalLM;
using models::CausalLMOptions;
using nn::AttentionKind;
using test::deviation;
using test::message_of;
using test::time_step;

namespace {

CausalLMOptions small(AttentionKind kind = AttentionKind::linear, bool pre_norm = true,
                      models::Positions positions = models::Positions::learned) {
  return {.vocab = 11,
          .dim = 8,
          .layers = 2,
          .heads = 2,
          .hidden = 12,
          .max_time = 32,
          .kind = kind,
          .window = 16,  // which two layers carry over all steps of the tests
          .pre_norm = pre_norm,
          .positions = positions};
}

template <class F>
void for_each_model(const F& f) {
  for (const AttentionKind kind : test::kCausalKinds) {
    for (const bool pre_norm : {true, false}) {
      for (const auto positions : {models::Positions::learned, models::Positions::sinusoidal}) {
        CAPTURE(nn::name(kind));
        CAPTURE(pre_norm);
        CAPTURE(static_cast<int>(positions));
        CausalLM net(small(kind, pre_norm, positions));
        test::randomise(net, 0.4);
        f(net);
      }
    }
  }
}

}  // namespace

TEST_CASE("language model: the recurrent form equals the parallel one; a state can be copied and saved") {
  test::TemporaryFile file("lm_state.safetensors");
  for_each_model([&](const CausalLM& net) {
    const Tensor tokens = test::tokens({3, 24}, 11), other = test::tokens({3, 24}, 11, 77);
    const Tensor logits = net(tokens).value();
    CHECK(logits.shape() == Shape{3, 24, 11});
    auto state = net.make_state(3);
    for (int64_t t = 0; t < 12; ++t) {
      CHECK(deviation(net.step(time_step(tokens, t), state), time_step(logits, t)) < 1e-5);
    }
    models::LMState copy = state, loaded = net.make_state(3);
    save_safetensors(file.path(), state.state_dict());
    loaded.load_state_dict(load_safetensors(file.path()));
    CHECK(loaded.position == 12);
    auto last = state.select(Tensor::from<int32_t>({2}, {1}));
    for (int64_t t = 12; t < 24; ++t) {
      net.step(time_step(other, t), copy);
      const Tensor now = net.step(time_step(tokens, t), state);
      CHECK(deviation(now, time_step(logits, t)) < 1e-5);
      CHECK(test::same_bits(net.step(time_step(tokens, t), loaded), now));
      CHECK(deviation(net.step(time_step(tokens, t).slice(2, 3), last), now.slice(2, 3)) < 1e-5);
    }
  });
}

TEST_CASE("language model: a step equals the parallel form at every level, for every activation, head and batch") {
  using nn::Activation;
  test::for_each_level([](const char* level) {
    CAPTURE(level);
    bool other = false;
    for (const auto activation :
         {Activation::gelu, Activation::gelu_tanh, Activation::relu, Activation::elu, Activation::tanh}) {
      for (const int64_t batch : {1, 3, 9, 70}) {
        other = !other;
        CAPTURE(static_cast<int>(activation));
        CAPTURE(batch);
        CausalLM net({.vocab = 21,
                      .dim = 24,
                      .layers = 2,
                      .heads = 3,
                      .hidden = 72,
                      .max_time = 8,
                      .kind = other ? AttentionKind::linear : AttentionKind::softmax,
                      .pre_norm = batch % 2 == 1,
                      .positions = other ? models::Positions::sinusoidal : models::Positions::learned,
                      .tie_head = !other,
                      .activation = activation,
                      .feature_map = batch == 9 ? FeatureMap::relu : FeatureMap::elu1});
        test::randomise(net, 0.3);
        for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
          net.to(dtype);
          const Tensor tokens = test::tokens({batch, 5}, 21), logits = net(tokens).value();
          auto state = net.make_state(batch);
          for (int64_t t = 0; t < 5; ++t)
            CHECK(deviation(net.step(time_step(tokens, t), state), time_step(logits, t)) <
                  (dtype == Dtype::f32 ? 1e-4 : 1e-12));
        }
      }
    }
  });
}

TEST_CASE("language model: samples do not see each other, nor the future, nor padding") {
  const KeyMask keys = KeyMask::lengths({20, 6});
  for_each_model([&](const CausalLM& net) {
    for (const int64_t time : {32, 20}) {  // a second length, shorter than the first
      const Tensor tokens = test::tokens({2, time}, 11);
      const Tensor logits = net(tokens).value();
      CHECK(deviation(net(tokens.slice(1, 2)).value(), logits.slice(1, 2)) < 1e-5);
      CHECK(deviation(net(test::sample(tokens, 0, 7)).value(), test::sample(logits, 0, 7)) < 1e-5);
      if (time != 20) continue;
      const Tensor padded = net(tokens, &keys).value();
      CHECK(deviation(test::sample(padded, 1, 6), net(test::sample(tokens, 1, 6)).value()) < 1e-5);
    }
  });
}

TEST_CASE("language model: a file gives the same logits, bit for bit, a tied head included") {
  test::TemporaryFile file("lm.safetensors");
  const Tensor tokens = test::tokens({2, 9}, 11);
  for (const bool tie_head : {false, true}) {
    CausalLMOptions options = small();
    options.tie_head = tie_head;
    CausalLM saved(options), loaded(options);
    test::randomise(saved);
    save_safetensors(file.path(), saved.state_dict());
    const StateDict state = load_safetensors(file.path());
    CHECK(state.has("head.weight") != tie_head);
    CHECK(state.has("stack.blocks.1.feed_forward.down.bias"));
    loaded.load_state_dict(state);
    CHECK(test::same_bits(loaded(tokens).value(), saved(tokens).value()));
    CHECK(loaded.head.weight.same_as(loaded.embed.weight) == tie_head);
    CHECK(saved.parameter_count() == 11 * 8 * (tie_head ? 1 : 2) + 11 + 32 * 8 + saved.stack.parameter_count());
  }
}

TEST_CASE("language model: every parameter gets a gradient, the tied one from both ends") {
  CausalLMOptions options = small();
  options.tie_head = true;
  CausalLM net(options);
  const Tensor tokens = test::tokens({2, 9}, 11);
  Tape tape;
  tape.backward(cross_entropy(net(tokens), tokens));
  for (const auto& [name, value] : net.named_parameters()) {
    CAPTURE(name);
    REQUIRE(value.grad().defined());
    CHECK(compute::sum_of_squares(value.grad()) > 0);
  }
}

TEST_CASE("language model: as a part of another model") {
  struct Pair : nn::Model {
    CausalLM left{*this, "left", small()};
    CausalLM right{*this, "right", small()};
  } net;
  CHECK(net.left.path() == "left");
  CHECK(net.state_dict().has("right.stack.blocks.0.norm1.weight"));
  CHECK(net.parameter_count() == 2 * net.left.parameter_count());
  CHECK_FALSE(test::same_bits(net.left.embed.weight.value(), net.right.embed.weight.value()));
}

TEST_CASE("language model: evaluation without a tape leaves no bytes behind") {
  for_each_model([](const CausalLM& net) {
    const Tensor tokens = test::tokens({2, 16}, 11);
    (void)net(tokens);
    const int64_t live = memory_stats(default_device()).live;
    double total = 0;
    int64_t first_peak = 0;
    for (int i = 0; i < 200; ++i) {
      reset_peak(default_device());
      const Variable logits = net(tokens);
      total += logits.value().to_vector<float>()[0];
      if (i == 0) first_peak = memory_stats(default_device()).peak;
      CHECK(memory_stats(default_device()).peak == first_peak);
    }
    CHECK(memory_stats(default_device()).live == live);
    CHECK(std::isfinite(total));
  });
}

TEST_CASE("language model: bad input is an error before anything changes") {
  CausalLM net(small());
  CHECK(message_of([&] { net(Tensor::zeros({2, 3})); }) == "CausalLM: tokens (2, 3) f32 are not i32 (batch, time)");
  CHECK(message_of([&] { net(test::tokens({3}, 11)); }) == "CausalLM: tokens (3) i32 are not i32 (batch, time)");
  CHECK(message_of([&] { net(test::tokens({1, 40}, 11)); }) == "CausalLM: 40 tokens given, but max_time is 32");
  CHECK_THROWS_WITH(net(Tensor::from<int32_t>({11}, {1, 1})), doctest::Contains("embedding: "));

  auto state = net.make_state(1);
  const Tensor token = Tensor::from<int32_t>({1}, {1});
  CHECK(message_of([&] {
          net.step(token.reshape({1, 1}), state);
        }) == "CausalLM: tokens (1, 1) i32 are not i32 (batch), one step");
  CHECK_THROWS_AS(net.step(Tensor::from<int32_t>({11}, {1}), state), Error);
  {
    Tape tape;
    CHECK(message_of([&] { net.step(token, state); }) ==
          "CausalLM: step changes its state in place, which a tape cannot replay; call it outside of the Tape's scope "
          "or under Tape::Pause");
  }
  CHECK(state.position == 0);
  CHECK(compute::sum_of_squares(state.stack.layers[0].linear.z.value()) == 0);
  for (int t = 0; t < 32; ++t) net.step(token, state);
  CHECK(message_of([&] { net.step(token, state); }) == "CausalLM: step 32 wanted, but max_time is 32");
  CHECK(state.position == 32);
}

TEST_CASE("language model: every feature map runs step by step as it does at once, and its projections are saved") {
  test::TemporaryFile file("lm_features.safetensors");
  const Tensor tokens = test::tokens({2, 20}, 11);
  for (const auto& each : test::feature_cases()) {
    CAPTURE(each.name);
    CausalLMOptions options = small();
    options.feature_map = each.features;
    options.eps = each.eps;
    CausalLM net(options);
    test::randomise(net, 0.4);
    const Tensor logits = net(tokens).value();
    auto state = net.make_state(2);
    for (int64_t t = 0; t < 20; ++t)
      CHECK(deviation(net.step(time_step(tokens, t), state), time_step(logits, t)) < 1e-5);
    save_safetensors(file.path(), net.state_dict());
    Generator generator{7, 0, 0};
    nn::redraw_features(net, generator);
    CHECK(test::same_bits(net(tokens).value(), logits) == net.named_buffers().empty());
    net.load_state_dict(load_safetensors(file.path()));
    CHECK(test::same_bits(net(tokens).value(), logits));
  }
}

TEST_CASE("language model: max_time is a must for learned positions and a choice for sinusoidal ones") {
  CausalLMOptions options = small();
  options.max_time = 0;
  CHECK(message_of([&] { CausalLM net(options); }) == "CausalLM: max_time 0, learned positions want at least 1");
  options.positions = models::Positions::sinusoidal;
  CausalLM net(options);
  CHECK(net(test::tokens({1, 300}, 11)).shape() == Shape{1, 300, 11});
  options.heads = 3;
  CHECK(message_of([&] { CausalLM bad(options); }) ==
        "Attention stack.blocks.0.attention: dim 8 cannot be divided among 3 heads");
  options.heads = 2;
  options.kind = AttentionKind::efficient;
  CHECK(message_of([&] { CausalLM bad(options); }) ==
        "Attention stack.blocks.0.attention: efficient attention cannot be causal, since its softmax over positions "
        "sees all keys at once; linear attention can");
}
