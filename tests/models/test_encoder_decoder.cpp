#include "linnet/models/encoder_decoder.h"

#include <doctest/doctest.h>

#include "linnet/autograd/gradcheck.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/ops/elementwise.h"
#include "support/arrays.h"
#include "support/attention_kinds.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using models::EncoderDecoder;
using models::EncoderDecoderOptions;
using nn::AttentionKind;
using test::deviation;
using test::message_of;
using test::time_step;

namespace {

EncoderDecoderOptions small(AttentionKind kind = AttentionKind::linear, AttentionKind cross = AttentionKind::linear,
                            bool pre_norm = true, models::Positions positions = models::Positions::sinusoidal) {
  return {.vocab = 11,
          .dim = 8,
          .heads = 2,
          .source_vocab = 7,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .hidden = 12,
          .max_time = 24,
          .max_source_time = 30,
          .kind = kind,
          .cross_kind = cross,
          .window = 7,  // which two layers carry over all steps of the tests
          .pre_norm = pre_norm,
          .positions = positions};
}

template <class F>
void for_each_options(const F& f) {
  test::for_each_decoder([&](AttentionKind kind, AttentionKind cross, bool pre_norm) {
    f(small(kind, cross, pre_norm, kind == cross ? models::Positions::learned : models::Positions::sinusoidal));
  });
}

template <class F>
void for_each_model(const F& f) {
  for_each_options([&](const EncoderDecoderOptions& options) {
    EncoderDecoder net(options);
    test::randomise(net, 0.4);
    f(net);
  });
}

}  // namespace

TEST_CASE("encoder-decoder: its cross weights, layer by layer, are those of the memory's rows that take part") {
  const KeyMask keys = KeyMask::lengths({9, 4});
  for_each_model([&](const EncoderDecoder& net) {
    const Tensor source = test::tokens({2, 9}, 7), target = test::tokens({2, 5}, 11);
    const std::vector<Tensor> layers = net.cross_weights(source, &keys, target);
    REQUIRE(layers.size() == 2);
    for (const Tensor& layer : layers) {
      REQUIRE(layer.shape() == Shape{2, 5, 2, 9});
      const std::vector<float> w = layer.to_vector<float>();
      for (size_t row = 0; row < w.size() / 9; ++row) {
        double all = 0, taking_part = 0;
        for (size_t j = 0; j < 9; ++j) {
          all += w[9 * row + j];
          if (row < 10 || j < 4) taking_part += w[9 * row + j];
        }
        REQUIRE(all == doctest::Approx(1));
        REQUIRE(taking_part == doctest::Approx(1));
      }
    }
    // The second layer's queries come from the first layer's output: the block itself says the same of them.
    const Variable memory = net.encode(source, &keys);
    const Variable x =
        std::visit([&](const auto& place) { return place(net.embed(target) * std::sqrt(8.0)); }, net.positions);
    const Variable h = net.decoder.blocks[0](x, memory, &keys);
    CHECK(deviation(layers[0], net.decoder.blocks[0].cross_weights(x, memory, &keys)) < 1e-6);
    CHECK(deviation(layers[1], net.decoder.blocks[1].cross_weights(h, memory, &keys)) < 1e-6);
  });
}

TEST_CASE("encoder-decoder: the recurrent form equals the parallel one; a state can be copied, saved and chosen from") {
  test::TemporaryFile file("encoder_decoder_state.safetensors");
  const KeyMask keys = KeyMask::lengths({9, 4, 0});
  for_each_model([&](const EncoderDecoder& net) {
    const Tensor source = test::tokens({3, 9}, 7), target = test::tokens({3, 16}, 11),
                 other = test::tokens({3, 16}, 11, 77);
    const Tensor logits = net(source, &keys, target).value();
    CHECK(logits.shape() == Shape{3, 16, 11});
    auto state = net.make_state(source, &keys, 4);
    for (int64_t t = 0; t < 8; ++t)
      CHECK(deviation(net.step(time_step(target, t), state), time_step(logits, t)) < 1e-5);
    models::EncoderDecoderState copy = state, loaded = net.make_state(test::tokens({3, 5}, 7, 5));
    save_safetensors(file.path(), state.state_dict());
    loaded.load_state_dict(load_safetensors(file.path()));
    CHECK(loaded.position == 8);
    auto last = state.select(Tensor::from<int32_t>({1}, {1}));
    for (int64_t t = 8; t < 16; ++t) {
      net.step(time_step(other, t), copy);
      const Tensor now = net.step(time_step(target, t), state);
      CHECK(deviation(now, time_step(logits, t)) < 1e-5);
      CHECK(test::same_bits(net.step(time_step(target, t), loaded), now));
      CHECK(deviation(net.step(time_step(target, t).slice(1, 2), last), now.slice(1, 2)) < 1e-5);
    }
  });
}

TEST_CASE("encoder-decoder: the target's attention to itself may be of another kind than the source's") {
  EncoderDecoderOptions options = small(AttentionKind::efficient, AttentionKind::efficient);
  CHECK(message_of([&] { EncoderDecoder bad(options); }) ==
        "Attention decoder.blocks.0.attention: efficient attention cannot be causal, since its softmax over positions "
        "sees all keys at once; linear attention can");
  for (const AttentionKind kind : test::kCausalKinds) {
    options.decoder_kind = kind;
    EncoderDecoder net(options);
    test::randomise(net, 0.4);
    const Tensor source = test::tokens({2, 9}, 7), target = test::tokens({2, 12}, 11);
    const KeyMask keys = KeyMask::lengths({9, 4});
    const Tensor logits = net(source, &keys, target).value();
    auto state = net.make_state(source, &keys);
    CHECK(state.decoder.layers[0].self.kind == kind);
    for (int64_t t = 0; t < 12; ++t)
      CHECK(deviation(net.step(time_step(target, t), state), time_step(logits, t)) < 1e-5);
  }
}

TEST_CASE("encoder-decoder: an encoder may hash; the target's attention to the source may not") {
  const std::vector<int32_t> lengths{9, 4};
  const KeyMask keys = KeyMask::lengths(lengths);
  const Tensor source = test::tokens({2, 9}, 7), target = test::tokens({2, 5}, 11);
  for (const AttentionKind kind : {AttentionKind::lsh, AttentionKind::clustered, AttentionKind::improved_clustered}) {
    CAPTURE(nn::name(kind));
    EncoderDecoderOptions options = small(kind, AttentionKind::softmax);
    options.decoder_kind = AttentionKind::softmax;
    options.lsh = test::kLsh;
    options.clustered = test::kClustered;
    EncoderDecoder net(options);
    test::randomise(net, 0.4);
    const Tensor logits = net(source, &keys, target).value();
    const Tensor alone = net(test::sample(source, 1, 4), nullptr, target.slice(1, 2)).value();
    CHECK(deviation(logits.slice(1, 2), alone) < 1e-5);
  }
  EncoderDecoderOptions options = small(AttentionKind::linear, AttentionKind::clustered);
  options.clustered = test::kClustered;
  CHECK(message_of([&] { EncoderDecoder bad(options); }) ==
        "DecoderBlock decoder.blocks.0: clustered attention to the memory given, whose answers depend on later steps; "
        "linear, softmax or efficient wanted");
}

TEST_CASE("encoder-decoder: a padded source gives what it gives alone; samples do not see each other") {
  const std::vector<int32_t> lengths{9, 4, 1};
  const KeyMask keys = KeyMask::lengths(lengths);
  for_each_model([&](const EncoderDecoder& net) {
    const Tensor source = test::tokens({3, 9}, 7), target = test::tokens({3, 8}, 11);
    const Tensor logits = net(source, &keys, target).value();
    for (int64_t b = 0; b < 3; ++b) {
      const Tensor alone = test::sample(source, b, lengths[static_cast<size_t>(b)]);
      CHECK(deviation(net(alone, nullptr, target.slice(b, b + 1)).value(), logits.slice(b, b + 1)) < 1e-5);
    }
  });
}

TEST_CASE("encoder-decoder: a target token changes its own logits and later ones, earlier ones by no bit") {
  for_each_model([](const EncoderDecoder& net) {
    const Tensor source = test::tokens({2, 6}, 7), target = test::tokens({2, 12}, 11);
    const Tensor before = net(source, nullptr, target).value();
    for (const int64_t t : {0, 5, 11}) {
      std::vector<int32_t> tokens = target.to_vector<int32_t>();
      for (size_t b = 0; b < 2; ++b) {
        int32_t& token = tokens[b * 12 + static_cast<size_t>(t)];
        token = (token + 1) % 11;
      }
      const Tensor changed = Tensor::from(tokens, target.shape());
      const Tensor after = net(source, nullptr, changed).value();
      CHECK(test::same_bits(compute::slice(after, 1, 0, t), compute::slice(before, 1, 0, t)));
      for (int64_t later = t; later < 12; ++later)
        CHECK(deviation(time_step(after, later), time_step(before, later)) > 1e-6);
    }
    const Tensor other = net(test::tokens({2, 6}, 7, 9), nullptr, target).value();
    CHECK(deviation(time_step(other, 0), time_step(before, 0)) > 1e-4);  // the source is seen
  });
}

TEST_CASE("encoder-decoder: gradients of every parameter of the whole model, in f64") {
  const Tensor source = test::tokens({2, 3}, 7), target = test::tokens({2, 4}, 5);
  const KeyMask keys = KeyMask::lengths({3, 1});
  for_each_options([&](EncoderDecoderOptions options) {
    options.vocab = 5;
    options.dim = 4;
    options.hidden = 3;
    options.encoder_layers = options.decoder_layers = 1;
    options.tie_head = options.pre_norm;
    EncoderDecoder net(options);
    test::randomise(net, 0.4);
    net.to(Dtype::f64);
    // Central differences in each parameter along a random direction.
    const auto loss = [&] { return cross_entropy(net(source, &keys, target), target); };
    {
      Tape tape({.training = false});
      tape.backward(loss());
    }
    for (auto& [name, p] : net.named_parameters()) {
      CAPTURE(name);
      REQUIRE(p.grad().defined());
      const Tensor direction = test::normal(p.shape(), 6, Dtype::f64), before = p.value().clone();
      const auto moved = [&](double step) {
        p.mutable_value().copy_from(compute::add(before, compute::scale(direction, step)));
        return loss().item();
      };
      const double numeric = (moved(1e-5) - moved(-1e-5)) / 2e-5;
      p.mutable_value().copy_from(before);
      double analytic = 0;
      const std::vector<double> slope = p.grad().to_vector<double>(), along = direction.to_vector<double>();
      for (size_t i = 0; i < slope.size(); ++i) analytic += slope[i] * along[i];
      CHECK(std::abs(analytic - numeric) <= 1e-7 * std::max(1.0, std::abs(numeric)));
    }
  });
}

TEST_CASE("encoder-decoder: a fully masked source gives finite logits and gradients") {
  const Tensor source = test::tokens({2, 5}, 7), target = test::tokens({2, 4}, 11);
  const KeyMask keys = KeyMask::lengths({0, 5});
  for_each_model([&](const EncoderDecoder& net) {
    Tape tape({.training = true, .check_finite = true});
    const Variable loss = cross_entropy(net(source, &keys, target), target);
    tape.backward(loss);
    for (const auto& [name, p] : net.named_parameters()) {
      CAPTURE(name);
      REQUIRE(p.grad().defined());
      CHECK(compute::all_finite(p.grad()));
      CHECK(compute::sum_of_squares(p.grad()) > 0);
    }
  });
}

TEST_CASE("encoder-decoder: a file gives the same logits, bit for bit, tied weights included") {
  test::TemporaryFile file("encoder_decoder.safetensors");
  const Tensor source = test::tokens({2, 6}, 11), target = test::tokens({2, 9}, 11);
  for (const bool tie_head : {false, true}) {
    for (const bool tie_source : {false, true}) {
      EncoderDecoderOptions options = small();
      options.source_vocab = 0;
      options.tie_head = tie_head;
      options.tie_source = tie_source;
      EncoderDecoder saved(options), loaded(options);
      test::randomise(saved);
      save_safetensors(file.path(), saved.state_dict());
      const StateDict state = load_safetensors(file.path());
      CHECK(state.has("embed.weight"));
      CHECK(state.has("head.weight") != tie_head);
      CHECK(state.has("source_embed.weight") != tie_source);
      CHECK(state.has("decoder.blocks.1.cross.kv.weight"));
      loaded.load_state_dict(state);
      CHECK(test::same_bits(loaded(source, nullptr, target).value(), saved(source, nullptr, target).value()));
      CHECK(loaded.head.weight.same_as(loaded.embed.weight) == tie_head);
      CHECK(loaded.source_embed.weight.same_as(loaded.embed.weight) == tie_source);
      const int64_t stacks = saved.encoder.parameter_count() + saved.decoder.parameter_count();
      CHECK(saved.parameter_count() == stacks + 11 * 8 * (3 - tie_head - tie_source) + 11);
    }
  }
}

TEST_CASE("encoder-decoder: embeddings are scaled by sqrt(dim), unless told not to") {
  EncoderDecoderOptions options = small();
  EncoderDecoder scaled(options);
  options.scale_embeddings = false;
  EncoderDecoder plain(options);
  test::randomise(scaled);
  plain.load_state_dict(scaled.state_dict());
  const Tensor source = test::tokens({1, 5}, 7), target = test::tokens({1, 6}, 11);
  CHECK(deviation(plain(source, nullptr, target).value(), scaled(source, nullptr, target).value()) > 1e-3);
  for (Variable* weight : {&plain.embed.weight, &plain.source_embed.weight})
    compute::scale_inplace(weight->mutable_value(), std::sqrt(8.0));
  CHECK(deviation(plain(source, nullptr, target).value(), scaled(source, nullptr, target).value()) < 1e-5);
  auto state = plain.make_state(source);
  const Tensor first = plain.step(time_step(target, 0), state);
  CHECK(deviation(first, time_step(scaled(source, nullptr, target).value(), 0)) < 1e-5);
}

TEST_CASE("encoder-decoder: dropout acts in training alone; positions need a limit only where they are learned") {
  EncoderDecoderOptions options = small();
  options.dropout = 0.3;
  options.max_time = options.max_source_time = 0;
  EncoderDecoder net(options);
  const Tensor source = test::tokens({2, 50}, 7), target = test::tokens({2, 60}, 11);
  const Tensor y = net(source, nullptr, target).value();
  {
    Tape tape({.training = false});
    CHECK(test::same_bits(net(source, nullptr, target).value(), y));
  }
  Tape tape;
  CHECK_FALSE(test::same_bits(net(source, nullptr, target).value(), net(source, nullptr, target).value()));
  options.positions = models::Positions::learned;
  CHECK(message_of([&] { EncoderDecoder bad(options); }) ==
        "EncoderDecoder: max_time 0, learned positions want at least 1");
}

TEST_CASE("encoder-decoder: empty batches, sources and targets") {
  for_each_model([](const EncoderDecoder& net) {
    const auto tokens = [](const Shape& shape) { return Tensor::zeros(shape, Dtype::i32); };
    CHECK(net(tokens({0, 3}), nullptr, tokens({0, 4})).shape() == Shape{0, 4, 11});
    CHECK(net(tokens({2, 3}), nullptr, tokens({2, 0})).shape() == Shape{2, 0, 11});
    CHECK(compute::all_finite(net(tokens({2, 0}), nullptr, tokens({2, 3})).value()));
    CHECK(net.generate(tokens({0, 3}), nullptr, {.start = 0, .end = 1, .tokens = 5}).shape() == Shape{0, 0});
  });
}

TEST_CASE("encoder-decoder: bad input is an error before anything changes") {
  EncoderDecoder net(small());
  const Tensor source = test::tokens({2, 5}, 7), target = test::tokens({2, 4}, 11);
  CHECK(message_of([&] {
          net(Tensor::zeros({2, 3}), nullptr, target);
        }) == "EncoderDecoder: source (2, 3) f32 is not i32 (batch, time)");
  CHECK(message_of([&] { net(source, nullptr, test::tokens({3}, 11)); }) ==
        "EncoderDecoder: target (3) i32 is not i32 (batch, time)");
  CHECK(message_of([&] {
          net(source, nullptr, test::tokens({2, 25}, 11));
        }) == "EncoderDecoder: 25 tokens of the target given, but at most 24 fit");
  CHECK(message_of([&] {
          net(test::tokens({2, 31}, 7), nullptr, target);
        }) == "EncoderDecoder: 31 tokens of the source given, but at most 30 fit");
  CHECK(message_of([&] {
          net(source, nullptr, test::tokens({3, 4}, 11));
        }) == "EncoderDecoder: source (2, 5) and target (3, 4) differ in batch");
  CHECK_THROWS_WITH(net(Tensor::full({2, 5}, 7, Dtype::i32), nullptr, target),
                    doctest::Contains("Embedding source_embed: embedding: index 7"));
  EncoderDecoderOptions options = small();
  options.tie_source = true;
  CHECK(message_of([&] { EncoderDecoder bad(options); }) ==
        "Embedding source_embed: tied weight f32 (11, 8) is not f32 or f64 (rows, dim) = (7, 8)");

  auto state = net.make_state(source);
  const Tensor token = Tensor::from<int32_t>({1, 2}, {2});
  CHECK(message_of([&] {
          net.step(token.reshape({2, 1}), state);
        }) == "EncoderDecoder: tokens (2, 1) i32 are not i32 (batch), one step");
  CHECK_THROWS_AS(net.step(Tensor::from<int32_t>({11, 0}, {2}), state), Error);
  CHECK_THROWS_AS(net.step(Tensor::from<int32_t>({1}, {1}), state), Error);
  CHECK(state.position == 0);
  {
    Tape tape;
    CHECK(message_of([&] { net.step(token, state); }) ==
          "EncoderDecoder: step is not recorded, and gradients would be lost; call it outside of the Tape's scope or "
          "under Tape::Pause");
    CHECK_THROWS_WITH(net.make_state(source), doctest::Contains("make_state is not recorded"));
    CHECK_THROWS_WITH(net.search(source, nullptr, {.start = 0, .end = 1, .tokens = 2}),
                      doctest::Contains("search is not recorded"));
  }
  for (int t = 0; t < 24; ++t) net.step(token, state);
  CHECK(message_of([&] { net.step(token, state); }) == "EncoderDecoder: step 24 wanted, but max_time is 24");

  const auto fault = [&](const models::DecodeOptions& wanted) {
    return message_of([&] { net.generate(source, nullptr, wanted); });
  };
  CHECK(fault({.start = 11, .end = 1, .tokens = 3}) == "EncoderDecoder: start token 11 is not one of 11");
  CHECK(fault({.start = 0, .end = -1, .tokens = 3}) == "EncoderDecoder: end token -1 is not one of 11");
  CHECK(fault({.start = 0, .end = 1, .tokens = 25}) == "EncoderDecoder: 25 tokens to make exceed max_time 24");
  CHECK(fault({.start = 0, .end = 1, .tokens = -1}) == "EncoderDecoder: -1 tokens to make, want 0 or more");
  CHECK(fault({.start = 0, .end = 1, .tokens = 3, .top_p = 0}) == "generate: top_p 0, want above 0 and at most 1");
}
