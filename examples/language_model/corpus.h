// Corpus: a text as tokens, the first nine tenths to learn from and the last held out, and the sequences of a step.
#pragma once
#include <string>

#include "language_model/vocabulary.h"
#include "linnet/core/tensor.h"

namespace language_model {

struct Text {
  std::string train, held_out;
  int64_t train_characters, held_out_characters;
};
/// A file whose lines end with "\n" whatever they ended with. Throws Error, naming the file, as data::read_lines does,
/// and where it is empty.
Text read_text(const std::string& path);

struct Corpus {
  Tokens tokens;  ///< of the whole text
  int64_t train;  ///< so many of the first are to learn from
  int64_t held_out_characters;
  int64_t unknown;  ///< held-out tokens that the vocabulary lacks

  int64_t held_out() const { return static_cast<int64_t>(tokens.size()) - train; }
};
/// Throws Error where it is too short for sequences of `context` tokens.
Corpus make_corpus(const Text& text, const Vocabulary& vocabulary, int64_t context);

struct Batch {
  linnet::Tensor inputs, targets;  ///< i32 (batch, context): each target is the token after its input
};
/// Sequences that begin anywhere in the text to learn from: a function of seed and step.
Batch make_batch(const Corpus& corpus, int64_t context, int64_t batch, uint64_t seed, int64_t step);

}  // namespace language_model
