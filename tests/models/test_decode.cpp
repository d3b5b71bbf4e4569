// Decoding with an encoder-decoder: greedy and by sampling.
#include <doctest/doctest.h>

#include "linnet/autograd/tape.h"
#include "linnet/models/encoder_decoder.h"
#include "linnet/ops/compare.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/adam.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using models::DecodeOptions;
using models::EncoderDecoder;
using nn::AttentionKind;
using test::same_bits;

namespace {

constexpr int32_t kStart = 0, kEnd = 1;

struct Net : EncoderDecoder {
  explicit Net(AttentionKind kind = AttentionKind::linear, bool pre_norm = true)
      : EncoderDecoder({.vocab = 9,
                        .dim = 8,
                        .heads = 2,
                        .encoder_layers = 1,
                        .decoder_layers = 2,
                        .hidden = 12,
                        .kind = kind,
                        .cross_kind = kind,
                        .pre_norm = pre_norm}) {
    test::randomise(*this, 0.5);
  }
};

/// The most likely target by the parallel form: the whole target again for every token.
std::vector<int32_t> greedy(const EncoderDecoder& net, const Tensor& source, int64_t tokens) {
  std::vector<int32_t> target{kStart};
  while (static_cast<int64_t>(target.size()) <= tokens) {
    const auto length = static_cast<int64_t>(target.size());
    const Tensor logits = net(source, nullptr, Tensor::from(target, {1, length})).value();
    target.push_back(argmax(test::time_step(logits, length - 1)).to_vector<int32_t>()[0]);
    if (target.back() == kEnd) break;
  }
  return {target.begin() + 1, target.end()};
}

}  // namespace

TEST_CASE("decode: greedy equals the argmax of the parallel logits, row by row, up to the end") {
  const Tensor source = test::tokens({5, 4}, 9);
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax}) {
    for (const bool pre_norm : {true, false}) {
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      Net net(kind, pre_norm);
      const Tensor made = net.generate(source, nullptr, {.start = kStart, .end = kEnd, .tokens = 12});
      size_t longest = 0;
      for (int64_t b = 0; b < 5; ++b) {
        std::vector<int32_t> wanted = greedy(net, source.slice(b, b + 1), 12);
        longest = std::max(longest, wanted.size());
        wanted.resize(static_cast<size_t>(made.size(1)), kEnd);
        CHECK(made.slice(b, b + 1).to_vector<int32_t>() == wanted);
      }
      CHECK(made.size(1) == static_cast<int64_t>(longest));
      const auto same = [&](const DecodeOptions& options) {
        return same_bits(net.generate(source, nullptr, options), made);
      };
      CHECK(same({.start = kStart, .end = kEnd, .tokens = 12, .temperature = 1, .top_k = 1}));
      CHECK(same({.start = kStart, .end = kEnd, .tokens = 12, .temperature = 1, .top_p = 1e-9}));
    }
  }
}

TEST_CASE("decode: a row depends on its own source and place, and the generator moves on") {
  Net net;
  const Tensor sources = test::tokens({3, 6}, 9);
  const KeyMask keys = KeyMask::lengths({6, 2, 4}), two = KeyMask::lengths({6, 2});
  Generator a{9, 0, 0}, b{9, 0, 0};
  const auto draw = [&](const Tensor& source, const KeyMask* mask, Generator& generator) {
    return net.generate(source, mask,
                        {.start = kStart, .end = kEnd, .tokens = 20, .temperature = 2, .generator = &generator});
  };
  const Tensor all = draw(sources, &keys, a), fewer = draw(sources.slice(0, 2), &two, b);
  const int64_t length = std::min(all.size(1), fewer.size(1));
  CHECK(length > 1);
  CHECK(same_bits(compute::slice(all.slice(0, 2), 1, 0, length), compute::slice(fewer, 1, 0, length)));
  CHECK(a.offset == 20);
  CHECK_FALSE(same_bits(draw(sources, &keys, a), all));
  Generator failing{1, 2, 3};
  net.head.bias.mutable_value().fill(std::nan(""));
  CHECK_THROWS_WITH(draw(sources, &keys, failing), "sample_logits: logit 0 is nan, want a number");
  CHECK(failing.offset == 3);
}

TEST_CASE("decode: under a pause nothing drops out") {
  manual_seed(1);
  const EncoderDecoder net(
      {.vocab = 9, .dim = 8, .heads = 2, .encoder_layers = 1, .decoder_layers = 1, .dropout = 0.5});
  const Tensor source = test::tokens({2, 4}, 9);
  const DecodeOptions options{.start = kStart, .end = kEnd, .tokens = 8};
  const Tensor wanted = net.generate(source, nullptr, options);
  Tape tape;
  Tape::Pause pause;
  CHECK(same_bits(net.generate(source, nullptr, options), wanted));
}

TEST_CASE("decode: a small model learns to reverse, and every decoder gives it back") {
  // Sources of 1 to 3 tokens out of 2 .. 8, padded with the end.
  const int64_t batch = 32, time = 3;
  Generator generator{5, 0, 0};
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax}) {
    CAPTURE(nn::name(kind));
    manual_seed(2);
    EncoderDecoder net({.vocab = 9,
                        .dim = 16,
                        .heads = 2,
                        .encoder_layers = 1,
                        .decoder_layers = 1,
                        .hidden = 32,
                        .kind = kind,
                        .cross_kind = AttentionKind::softmax});
    optim::Adam optimizer(net.parameters(), {.lr = 5e-3});
    std::vector<int32_t> lengths, source, input, target;
    const auto draw = [&] {
      lengths.clear(), source.clear(), input.clear(), target.clear();
      for (int64_t b = 0; b < batch; ++b) {
        std::vector<int32_t> row(static_cast<size_t>(1 + generator.below(time)));
        for (int32_t& token : row) token = static_cast<int32_t>(2 + generator.below(7));
        lengths.push_back(static_cast<int32_t>(row.size()));
        std::vector<int32_t> back(row.rbegin(), row.rend()), after{kStart};
        after.insert(after.end(), back.begin(), back.end());
        row.resize(time, kEnd), back.resize(time + 1, kEnd), after.resize(time + 1, kEnd);
        source.insert(source.end(), row.begin(), row.end());
        input.insert(input.end(), after.begin(), after.end());
        target.insert(target.end(), back.begin(), back.end());
      }
    };
    for (int step = 0; step < 400; ++step) {
      draw();
      const KeyMask keys = KeyMask::lengths(lengths);
      Tape tape;
      const Variable logits = net(Tensor::from(source, {batch, time}), &keys, Tensor::from(input, {batch, time + 1}));
      tape.backward(cross_entropy(logits, Tensor::from(target, {batch, time + 1})));
      optimizer.step();
      optimizer.clear_grads();
    }
    draw();
    const KeyMask keys = KeyMask::lengths(lengths);
    const Tensor sources = Tensor::from(source, {batch, time});
    const DecodeOptions options{.start = kStart, .end = kEnd, .tokens = time + 1};
    const std::vector<int32_t> made = net.generate(sources, &keys, options).to_vector<int32_t>();
    REQUIRE(made.size() == target.size());
    int right = 0;
    for (size_t i = 0; i < made.size(); ++i) right += made[i] == target[i];
    CHECK(right >= 0.95 * static_cast<double>(made.size()));
    const auto found = net.search(sources, &keys, {.start = kStart, .end = kEnd, .tokens = time + 1, .beams = 3});
    right = 0;
    for (size_t b = 0; b < found.size(); ++b) {
      std::vector<int32_t> best = found[b][0].tokens;
      best.resize(time + 1, kEnd);
      right += std::equal(best.begin(), best.end(), target.begin() + static_cast<int64_t>(b) * (time + 1));
    }
    CHECK(right >= 0.9 * static_cast<double>(batch));
  }
}
