#include "translate/translator.h"

#include <algorithm>

#include "linnet/ops/cross_entropy.h"
#include "support/predictions.h"

namespace translate {

using linnet::data::kBegin, linnet::data::kEnd, linnet::data::kPadding;

namespace {
constexpr int64_t kBatch = 64, kBatchTokens = 2048;

/// A translation has at most so many tokens.
int64_t most_tokens(int64_t source) { return 2 * source + 10; }
}  // namespace

std::vector<std::string> Translator::operator()(const std::vector<std::string>& lines, const SearchOptions& options,
                                                const std::function<bool()>& stop, int64_t* cut) const {
  std::vector<Tokens> sources;
  std::vector<int64_t> lengths;
  for (const std::string& line : lines) {
    sources.push_back(encode(line, cut));
    lengths.push_back(static_cast<int64_t>(sources.back().size()));
  }
  const linnet::data::Plan plan =
      linnet::data::plan_by_length(lengths, {.max_tokens = kBatchTokens, .max_items = kBatch, .shuffle = false});
  std::vector<std::string> translations(lines.size());
  for (const std::vector<int64_t>& batch : plan(0)) {
    if (stop && stop()) break;
    std::vector<Tokens> given;
    std::vector<size_t> places;
    for (int64_t item : batch) {
      const size_t i = static_cast<size_t>(item);
      if (sources[i].empty()) continue;
      given.push_back(sources[i]);
      places.push_back(i);
    }
    if (given.empty()) continue;
    const std::vector<Tokens> made = decode(given, options);
    for (size_t i = 0; i < made.size(); ++i) translations[places[i]] = tokenizer_.decode(made[i]);
  }
  return translations;
}

Tokens Translator::encode(const std::string& line, int64_t* cut) const {
  Tokens source = tokenizer_.encode(line);
  if (static_cast<int64_t>(source.size()) > kMostPieces) {
    source.resize(static_cast<size_t>(kMostPieces));
    if (cut) ++*cut;
  }
  if (!source.empty()) source.push_back(kEnd);
  return source;
}

std::vector<Tokens> Translator::decode(const std::vector<Tokens>& sources, const SearchOptions& options) const {
  const linnet::data::Padded source = linnet::data::pad(sources, kPadding);
  const linnet::KeyMask keys = linnet::KeyMask::lengths(source.lengths);
  const linnet::Tensor there = source.tokens.to(linnet::default_device());
  const int64_t tokens = most_tokens(source.tokens.size(1));
  std::vector<Tokens> targets;
  if (options.beams > 1) {
    const auto found = net_.search(
        there, &keys,
        {.start = kBegin, .end = kEnd, .tokens = tokens, .beams = options.beams, .alpha = options.length_penalty});
    for (const auto& best : found) targets.push_back(best.front().tokens);
  } else {
    const linnet::Tensor made = net_.generate(there, &keys,
                                              {.start = kBegin,
                                               .end = kEnd,
                                               .tokens = tokens,
                                               .temperature = options.temperature,
                                               .top_k = options.top_k,
                                               .top_p = options.top_p});
    const Tokens all = made.to_vector<int32_t>();
    const int64_t time = made.size(1);
    for (int64_t row = 0; row < made.size(0); ++row)
      targets.emplace_back(all.begin() + row * time, all.begin() + (row + 1) * time);
  }
  for (Tokens& target : targets) target.erase(std::find(target.begin(), target.end(), kEnd), target.end());
  return targets;
}

double mean_loss(const linnet::models::EncoderDecoder& net, const std::vector<Pair>& pairs, int64_t batch_tokens,
                 const std::function<bool()>& stop) {
  double loss = 0;
  int64_t tokens = 0;
  for (const std::vector<int64_t>& numbers : plan_of(pairs, batch_tokens, false, 0)(0)) {
    if (stop && stop()) break;
    std::vector<Pair> chosen;
    for (int64_t number : numbers) chosen.push_back(pairs[static_cast<size_t>(number)]);
    const Batch batch = make_batch(chosen);
    const linnet::KeyMask keys = batch.keys();
    loss += linnet::cross_entropy(net(batch.source, &keys, batch.inputs), batch.targets,
                                  {.reduce = linnet::Reduce::sum, .ignore_index = example::kIgnored})
                .item();
    tokens += batch.tokens;
  }
  return tokens > 0 ? loss / static_cast<double>(tokens) : 0;
}

}  // namespace translate
