#include "language_model/corpus.h"

#include <algorithm>

#include "linnet/core/random.h"
#include "linnet/data/text.h"
#include "linnet/data/utf8.h"

namespace language_model {

Text read_text(const std::string& path) {
  linnet::data::TextLimits limits;
  limits.line_bytes = limits.file_bytes;
  std::string all;
  for (const std::string& line : linnet::data::read_lines(path, limits)) all += line + "\n";
  const std::u32string points = linnet::data::code_points("language_model", all);
  LINNET_CHECK(!points.empty(), path, ": holds no text");
  const size_t cut = points.size() / 10 * 9;
  Text text{{}, {}, static_cast<int64_t>(cut), static_cast<int64_t>(points.size() - cut)};
  for (size_t i = 0; i < points.size(); ++i) linnet::data::append_utf8(i < cut ? text.train : text.held_out, points[i]);
  return text;
}

Corpus make_corpus(const Text& text, const Vocabulary& vocabulary, int64_t context) {
  Corpus corpus{vocabulary.encode(text.train), 0, text.held_out_characters, 0};
  corpus.train = static_cast<int64_t>(corpus.tokens.size());
  LINNET_CHECK(corpus.train > context, "the text is too short: of its first nine tenths ", corpus.train,
               " tokens, but a sequence takes --context ", context, " and one more");
  const Tokens held_out = vocabulary.encode(text.held_out);
  LINNET_CHECK(!held_out.empty(), "the text is too short: nothing is held out");
  corpus.unknown = std::count(held_out.begin(), held_out.end(), linnet::data::kUnknown);
  corpus.tokens.insert(corpus.tokens.end(), held_out.begin(), held_out.end());
  return corpus;
}

Batch make_batch(const Corpus& corpus, int64_t context, int64_t batch, uint64_t seed, int64_t step) {
  linnet::Generator generator{seed, linnet::stream_of("language_model.training"), static_cast<uint64_t>(step) << 32};
  Tokens inputs, targets;
  for (int64_t row = 0; row < batch; ++row) {
    const auto begin = corpus.tokens.begin() + generator.below(corpus.train - context);
    inputs.insert(inputs.end(), begin, begin + context);
    targets.insert(targets.end(), begin + 1, begin + 1 + context);
  }
  return {linnet::Tensor::from(inputs, {batch, context}), linnet::Tensor::from(targets, {batch, context})};
}

}  // namespace language_model
