#include "translate/corpus.h"

#include <algorithm>

#include "linnet/data/text.h"
#include "support/predictions.h"

namespace translate {

using linnet::data::kBegin, linnet::data::kEnd, linnet::data::kPadding;

Lines read_pairs(const std::string& source, const std::string& target) {
  auto both = linnet::data::read_parallel({source, target});
  return {std::move(both[0]), std::move(both[1])};
}

std::vector<Pair> encode_pairs(const Lines& lines, const linnet::data::SubwordTokenizer& tokenizer, int64_t max_length,
                               Left& left) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < lines.source.size(); ++i) {
    Pair pair{tokenizer.encode(lines.source[i], {.end = true}),
              tokenizer.encode(lines.target[i], {.begin = true, .end = true})};
    const int64_t length = static_cast<int64_t>(std::max(pair.source.size(), pair.target.size()));
    if (pair.source.size() < 2 || pair.target.size() < 3) {
      ++left.empty;
    } else if (max_length > 0 && length > max_length) {
      ++left.too_long;
    } else {
      pairs.push_back(std::move(pair));
    }
  }
  return pairs;
}

linnet::data::Plan plan_of(const std::vector<Pair>& pairs, int64_t max_tokens, bool shuffle, uint64_t seed) {
  std::vector<int64_t> lengths;
  for (const Pair& pair : pairs)
    lengths.push_back(static_cast<int64_t>(std::max(pair.source.size(), pair.target.size() - 1)));
  return linnet::data::plan_by_length(std::move(lengths), {.max_tokens = max_tokens, .shuffle = shuffle, .seed = seed});
}

Batch make_batch(const std::vector<Pair>& pairs) {
  std::vector<Tokens> sources, inputs, targets;
  Batch batch;
  for (const Pair& pair : pairs) {
    sources.push_back(pair.source);
    inputs.emplace_back(pair.target.begin(), pair.target.end() - 1);
    targets.emplace_back(pair.target.begin() + 1, pair.target.end());
    batch.tokens += static_cast<int64_t>(targets.back().size());
  }
  linnet::data::Padded source = linnet::data::pad(sources, kPadding);
  const auto padded = [](const std::vector<Tokens>& rows, int32_t with) {
    return linnet::data::pad(rows, with).tokens.to(linnet::default_device());
  };
  batch.source = source.tokens.to(linnet::default_device());
  batch.source_lengths = std::move(source.lengths);
  batch.inputs = padded(inputs, kPadding);
  batch.targets = padded(targets, example::kIgnored);
  return batch;
}

}  // namespace translate
