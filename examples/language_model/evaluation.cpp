#include "language_model/evaluation.h"

#include <algorithm>
#include <cstdio>
#include <numbers>

#include "linnet/ops/cross_entropy.h"
#include "support/predictions.h"

namespace language_model {
namespace {

constexpr int64_t kBatch = 8;

/// Targets first .. last-1, numbers of tokens.
struct Part {
  int64_t first, last;
};

std::vector<Part> parts_of(const Corpus& corpus, int64_t size, int64_t most) {
  const int64_t n = static_cast<int64_t>(corpus.tokens.size()), all = (corpus.held_out() + size - 1) / size;
  const int64_t chosen = most > 0 ? std::min(most, all) : all;
  std::vector<Part> parts;
  for (int64_t i = 0; i < chosen; ++i) {
    const int64_t first = corpus.train + i * all / chosen * size;
    parts.push_back({first, std::min(first + size, n)});
  }
  return parts;
}

}  // namespace

std::string bits_text(double bits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f bits a character", bits);
  return text;
}

double bits_per_character(const linnet::models::CausalLM& net, const Corpus& corpus, int64_t context, int64_t most,
                          const std::function<bool()>& stop) {
  const std::vector<Part> parts = parts_of(corpus, context / 2, most);
  double nats = 0;
  int64_t counted = 0;
  for (size_t at = 0; at < parts.size(); at += kBatch) {
    if (stop && stop()) return 0;
    Tokens inputs, targets;
    const size_t rows = std::min<size_t>(kBatch, parts.size() - at);
    for (size_t i = at; i < at + rows; ++i) {
      const auto [first, last] = parts[i];
      const auto end = corpus.tokens.begin() + last;
      inputs.insert(inputs.end(), end - 1 - context, end - 1);
      targets.insert(targets.end(), static_cast<size_t>(context - (last - first)), example::kIgnored);
      targets.insert(targets.end(), end - (last - first), end);
      counted += last - first;
    }
    const linnet::Shape shape{static_cast<int64_t>(rows), context};
    nats += linnet::cross_entropy(net(linnet::Tensor::from(inputs, shape)), linnet::Tensor::from(targets, shape),
                                  {.reduce = linnet::Reduce::sum, .ignore_index = example::kIgnored})
                .item();
  }
  const double characters_per_token =
      static_cast<double>(corpus.held_out_characters) / static_cast<double>(corpus.held_out());
  return nats / std::numbers::ln2 / static_cast<double>(counted) / characters_per_token;
}

}  // namespace language_model
