// Vocabulary: a text as numbers, by its characters or by pieces of words.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "linnet/data/subwords.h"
#include "linnet/data/tokenizer.h"
#include "support/run_directory.h"

namespace language_model {

using Tokens = std::vector<int32_t>;

/// Pieces of words stand within lines, so kEnd stands for the end of a line then.
class Vocabulary {
 public:
  /// Of what the text holds: every character, or `subwords` pieces where that is not 0.
  static Vocabulary of(const std::string& text, int64_t subwords);
  static Vocabulary load(const example::RunDirectory& run, int64_t subwords);
  void save(const example::RunDirectory& run) const;
  static const char* file_name(int64_t subwords);  ///< in the run's folder

  int64_t size() const;
  /// What the vocabulary lacks is kUnknown. Throws where the text is not UTF-8.
  Tokens encode(const std::string& text) const;
  std::string decode(const Tokens& tokens) const;
  /// Whether the text of what follows does not depend on what was before.
  bool stands_alone(int32_t token) const;
  /// Whether a text may hold it: special tokens are in none, but for the end of a line.
  bool is_text(int32_t token) const;

 private:
  using Characters = linnet::data::CharTokenizer;
  using Subwords = linnet::data::SubwordTokenizer;
  explicit Vocabulary(std::variant<Characters, Subwords> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  std::variant<Characters, Subwords> tokenizer_;
};

}  // namespace language_model
