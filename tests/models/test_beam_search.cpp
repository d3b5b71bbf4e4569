#include "linnet/models/beam_search.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "linnet/core/compute.h"
#include "linnet/models/encoder_decoder.h"
#include "linnet/ops/softmax.h"
#include "support/arrays.h"
#include "support/close.h"
#include "support/modules.h"

using namespace linnet;
using models::beam_search;
using models::BeamOptions;
using models::Hypothesis;
using nn::AttentionKind;
using test::message_of;
using Tokens = std::vector<int32_t>;

namespace {

constexpr int32_t kStart = 0, kEnd = 1;
constexpr int64_t kVocab = 4;

struct Net : models::EncoderDecoder {
  Net(AttentionKind kind, AttentionKind cross, bool pre_norm, double std)
      : EncoderDecoder({.vocab = kVocab,
                        .dim = 8,
                        .heads = 2,
                        .source_vocab = 7,
                        .encoder_layers = 1,
                        .decoder_layers = 2,
                        .hidden = 12,
                        .kind = kind,
                        .cross_kind = cross,
                        .pre_norm = pre_norm}) {
    test::randomise(*this, std);
  }
};

template <class F>
void for_each_model(const F& f) {
  for (const AttentionKind kind : {AttentionKind::linear, AttentionKind::softmax}) {
    for (const bool pre_norm : {true, false}) {
      const AttentionKind cross = pre_norm ? kind : AttentionKind::softmax;
      CAPTURE(nn::name(kind));
      CAPTURE(pre_norm);
      f(Net(kind, cross, pre_norm, 0.6));
    }
  }
}

/// Every sequence that ends within `tokens`, and every one of `tokens` that does not: (finished, tokens).
void enumerate(const Tokens& so_far, int64_t tokens, std::vector<std::pair<bool, Tokens>>& all) {
  if (static_cast<int64_t>(so_far.size()) == tokens) return all.emplace_back(false, so_far), void();
  for (int32_t token = 0; token < kVocab; ++token) {
    Tokens next = so_far;
    next.push_back(token);
    if (token == kEnd)
      all.emplace_back(true, next);
    else
      enumerate(next, tokens, all);
  }
}

/// All of them with their probabilities, by the parallel form; best first, the finished ones before the others.
std::vector<Hypothesis> exhaustive(const Net& net, const Tensor& source, int64_t tokens, double alpha) {
  std::vector<std::pair<bool, Tokens>> all;
  enumerate({}, tokens, all);
  std::vector<Hypothesis> list;
  for (const auto& [finished, target] : all) {
    const auto length = static_cast<int64_t>(target.size());
    Tokens input{kStart};
    input.insert(input.end(), target.begin(), target.end() - 1);
    const Tensor logits = net(source, nullptr, Tensor::from(input, {1, length})).value();
    const std::vector<double> p = log_softmax(logits.to(Dtype::f64)).value().to_vector<double>();
    double sum = 0;
    for (int64_t t = 0; t < length; ++t) sum += p[static_cast<size_t>(t * kVocab + target[static_cast<size_t>(t)])];
    list.push_back({target, sum, sum / std::pow((5 + static_cast<double>(length)) / 6, alpha), finished});
  }
  std::sort(list.begin(), list.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return a.finished != b.finished ? a.finished : a.score > b.score;
  });
  return list;
}

/// A model of the next token that reads no state: the same logits in every step, for one sample.
models::NextLogits always(const std::vector<float>& logits) {
  return [logits](const Tensor&, const Tensor& tokens) {
    std::vector<float> all;
    for (int64_t i = 0; i < tokens.numel(); ++i) all.insert(all.end(), logits.begin(), logits.end());
    return Tensor::from(all, {tokens.numel(), static_cast<int64_t>(logits.size())});
  };
}

}  // namespace

TEST_CASE("beam search: the penalty is the paper's") {
  CHECK(models::length_penalty(1, 0.6) == doctest::Approx(1));
  CHECK(models::length_penalty(7, 1) == doctest::Approx(2));
  CHECK(models::length_penalty(7, 0.5) == doctest::Approx(std::sqrt(2)));
  CHECK(models::length_penalty(100, 0) == 1);
}

TEST_CASE("beam search: wide enough, it gives all sequences, each sample's best first") {
  const Tensor source = test::tokens({2, 5}, 7);
  for_each_model([&](const Net& net) {
    for (const double alpha : {0.0, 0.6, 2.0}) {
      CAPTURE(alpha);
      const int64_t tokens = 3;
      std::vector<std::pair<bool, Tokens>> all;
      enumerate({}, tokens, all);
      const auto found =
          net.search(source, nullptr, {.start = kStart, .end = kEnd, .tokens = tokens, .beams = 200, .alpha = alpha});
      REQUIRE(found.size() == 2);
      for (int64_t b = 0; b < 2; ++b) {
        const auto wanted = exhaustive(net, source.slice(b, b + 1), tokens, alpha);
        const auto& list = found[static_cast<size_t>(b)];
        REQUIRE(list.size() == all.size());
        for (size_t i = 0; i < list.size(); ++i) {
          CAPTURE(i);
          CHECK(list[i].finished == wanted[i].finished);
          CHECK(std::abs(list[i].score - wanted[i].score) < 1e-4);
          CHECK(std::abs(list[i].log_probability / models::length_penalty(list[i].tokens.size(), alpha) -
                         list[i].score) < 1e-9);
        }
        CHECK(list[0].tokens == wanted[0].tokens);
      }
    }
  });
}

TEST_CASE("beam search: a narrow beam's scores are those of its sequences, and a wider one is no worse here") {
  const Tensor source = test::tokens({3, 6}, 7);
  const KeyMask keys = KeyMask::lengths({6, 2, 4});
  for_each_model([&](const Net& net) {
    const auto narrow = net.search(source, &keys, {.start = kStart, .end = kEnd, .tokens = 5, .beams = 2});
    const auto wide = net.search(source, &keys, {.start = kStart, .end = kEnd, .tokens = 5, .beams = 500});
    for (size_t b = 0; b < 3; ++b) {
      const auto from = static_cast<int64_t>(b);
      const Tensor alone = test::sample(source, from, std::vector<int64_t>{6, 2, 4}[b]);
      const auto all = exhaustive(net, alone, 5, 0.6);
      REQUIRE(narrow[b].size() == 2);
      CHECK(wide[b][0].tokens == all[0].tokens);
      CHECK(narrow[b][0].score <= all[0].score + 1e-5);
      for (const Hypothesis& each : narrow[b]) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.tokens == each.tokens; });
        REQUIRE(same != all.end());
        CHECK(std::abs(same->score - each.score) < 1e-4);
        CHECK(same->finished == each.finished);
      }
    }
  });
}

TEST_CASE("beam search: one beam without a penalty is greedy") {
  const Tensor source = test::tokens({4, 6}, 7);
  for_each_model([&](const Net& net) {
    const Tensor greedy = net.generate(source, nullptr, {.start = kStart, .end = kEnd, .tokens = 9});
    const auto found = net.search(source, nullptr, {.start = kStart, .end = kEnd, .tokens = 9, .beams = 1, .alpha = 0});
    for (size_t b = 0; b < 4; ++b) {
      REQUIRE(found[b].size() == 1);
      Tokens row = greedy.slice(static_cast<int64_t>(b), static_cast<int64_t>(b) + 1).to_vector<int32_t>();
      const auto end = std::find(row.begin(), row.end(), kEnd);
      CHECK(found[b][0].finished == (end != row.end()));
      if (end != row.end()) row.erase(end + 1, row.end());
      CHECK(found[b][0].tokens == row);
    }
  });
}

TEST_CASE("beam search: a sample's result does not depend on the others in the batch") {
  const Tensor source = test::tokens({3, 6}, 7);
  for_each_model([&](const Net& net) {
    const BeamOptions options{.start = kStart, .end = kEnd, .tokens = 8, .beams = 3};
    const auto all = net.search(source, nullptr, options);
    for (int64_t b = 0; b < 3; ++b) {
      const auto alone = net.search(source.slice(b, b + 1), nullptr, options)[0];
      const auto& together = all[static_cast<size_t>(b)];
      REQUIRE(alone.size() == together.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        CHECK(alone[i].tokens == together[i].tokens);
        CHECK(std::abs(alone[i].score - together[i].score) < 1e-5);
      }
    }
  });
}

TEST_CASE("beam search: ends, cuts, equals and impossible tokens") {
  const float none = -std::numeric_limits<float>::infinity();
  const auto first = [](const std::vector<std::vector<Hypothesis>>& found) { return found.at(0).at(0); };
  // The end is unlikely and the sequence cut off.
  Hypothesis best = first(beam_search(1, {.start = 0, .end = 1, .tokens = 3, .beams = 2}, always({0, none, 1})));
  CHECK(best.tokens == Tokens{2, 2, 2});
  CHECK_FALSE(best.finished);
  CHECK(best.log_probability == doctest::Approx(-3 * std::log(1 + std::exp(-1.0))));
  // Nothing but the end.
  const auto only = beam_search(2, {.start = 0, .end = 1, .tokens = 3, .beams = 4}, always({none, 5, none}));
  REQUIRE(only.size() == 2);
  REQUIRE(only[1].size() == 1);
  CHECK(only[1][0].tokens == Tokens{1});
  CHECK(only[1][0].finished);
  CHECK(only[1][0].score == 0);
  // The first of equals.
  CHECK(first(beam_search(1, {.start = 0, .end = 2, .tokens = 1, .beams = 1}, always({3, 3, 0}))).tokens == Tokens{0});
  // A penalty that favours length: the end costs 1, each token less.
  const std::vector<float> logits{2, 1};
  const BeamOptions options{.start = 0, .end = 1, .tokens = 6, .beams = 64};
  BeamOptions lengthy = options, plain = options;
  lengthy.alpha = 5, plain.alpha = 0;
  CHECK(first(beam_search(1, plain, always(logits))).tokens == Tokens{1});
  CHECK(first(beam_search(1, lengthy, always(logits))).tokens == Tokens{0, 0, 0, 0, 0, 1});
  // No tokens, no samples.
  CHECK(beam_search(0, options, always(logits)).empty());
  const auto empty = beam_search(1, {.start = 0, .end = 1, .tokens = 0}, always(logits));
  REQUIRE(empty[0].size() == 1);
  CHECK(empty[0][0].tokens.empty());
}

TEST_CASE("beam search: a sample is done as soon as nothing better can come") {
  int calls = 0;
  const auto next = always({0, 9, 0});
  const auto counting = [&](const Tensor& parents, const Tensor& tokens) {
    ++calls;
    return next(parents, tokens);
  };
  const auto found = beam_search(1, {.start = 0, .end = 1, .tokens = 1000, .beams = 1, .alpha = 0}, counting);
  CHECK(calls == 1);
  CHECK(found[0][0].tokens == Tokens{1});
}

TEST_CASE("beam search: errors") {
  const auto fault = [](const BeamOptions& options, const std::vector<float>& logits) {
    return message_of([&] { beam_search(1, options, always(logits)); });
  };
  CHECK(fault({.start = 0, .end = 1, .tokens = 3, .beams = 0}, {0, 1}) == "beam_search: 0 beams, want at least 1");
  CHECK(fault({.start = 0, .end = 1, .tokens = -1}, {0, 1}) == "beam_search: -1 tokens, want 0 or more");
  CHECK(fault({.start = 0, .end = 1, .tokens = 3, .alpha = -1}, {0, 1}) ==
        "beam_search: alpha -1, want finite and not negative");
  CHECK(fault({.start = 0, .end = 1, .tokens = 3}, {0, std::nanf("")}) == "beam_search: logit 1 is nan, want a number");
  CHECK(fault({.start = 0, .end = 2, .tokens = 3}, {0, 1}) ==
        "beam_search: logits (1, 2) given, (1, vocab) wanted, with end token 2 in vocab");
  const float none = -std::numeric_limits<float>::infinity();
  CHECK(fault({.start = 0, .end = 1, .tokens = 3}, {none, none}) == "beam_search: none of 2 logits is above -infinity");
}
