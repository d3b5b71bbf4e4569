// Translator: sentences in, sentences out, by a trained model.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "linnet/data/bleu.h"
#include "linnet/data/subwords.h"
#include "linnet/models/encoder_decoder.h"
#include "translate/corpus.h"

namespace translate {

struct SearchOptions {
  int64_t beams = 1;          ///< 1: greedy, or drawn at random
  double length_penalty = 1;  ///< alpha of beam search: 0 prefers short translations
  double temperature = 0;     ///< 0: the likeliest; else beams must be 1
  int64_t top_k = 0;          ///< draw among the k likeliest; 0: all
  double top_p = 1;           ///< then among as few as have this probability together
};

/// Longer sources are cut before they are translated.
inline constexpr int64_t kMostPieces = 1000;

class Translator {
 public:
  Translator(const linnet::models::EncoderDecoder& net, const linnet::data::SubwordTokenizer& tokenizer)
      : net_(net), tokenizer_(tokenizer) {}

  /// One translation a line, in their order; of a line without text an empty one. Ends early, with empty ones, once
  /// stop() is true. `cut` counts the lines that were cut.
  std::vector<std::string> operator()(const std::vector<std::string>& lines, const SearchOptions& options,
                                      const std::function<bool()>& stop = {}, int64_t* cut = nullptr) const;
  /// A line as the model takes it, cut to kMostPieces, with kEnd; nothing where it has no text.
  Tokens encode(const std::string& line, int64_t* cut = nullptr) const;
  /// The targets of sources that hold something, without their ends.
  std::vector<Tokens> decode(const std::vector<Tokens>& sources, const SearchOptions& options) const;

 private:
  const linnet::models::EncoderDecoder& net_;
  const linnet::data::SubwordTokenizer& tokenizer_;
};

/// The mean loss of the targets' tokens, without smoothing. Ends early once stop() is true.
double mean_loss(const linnet::models::EncoderDecoder& net, const std::vector<Pair>& pairs, int64_t batch_tokens,
                 const std::function<bool()>& stop);

}  // namespace translate
