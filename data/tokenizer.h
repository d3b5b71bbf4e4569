// CharTokenizer: texts as code points, numbered. And the numbers that both tokenizers of linnet give to special tokens.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "linnet/core/state_dict.h"

namespace linnet::data {

enum SpecialToken : int32_t { kPadding = 0, kUnknown = 1, kBegin = 2, kEnd = 3 };

/// Which special tokens stand around an encoded text.
struct EncodeOptions {
  bool begin = false, end = false;
};

class CharTokenizer {
 public:
  /// A vocabulary of every code point in a text. Throws where it is not UTF-8.
  static CharTokenizer of(std::string_view text);

  int64_t vocab() const { return static_cast<int64_t>(characters_.size()) + 4; }  ///< special tokens included

  /// Code points in order have the tokens from 4 on; one that the vocabulary lacks is kUnknown. Throws where the text
  /// is not UTF-8.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// The inverse: kUnknown becomes U+FFFD, other special tokens nothing. Throws for a token outside the vocabulary.
  std::string decode(const std::vector<int32_t>& tokens) const;

  StateDict state_dict() const;                  ///< "characters": i32, the code points in order
  void load_state_dict(const StateDict& state);  ///< throws, and changes nothing, where they are none or not in order
  /// The same as a text file: after a title one code point a line, such as U+00E4.
  void save(const std::string& path) const;
  static CharTokenizer load(const std::string& path);

 private:
  void set_characters(const char* op, std::u32string characters);

  std::u32string characters_;
  std::unordered_map<char32_t, int32_t> token_of_;
};

}  // namespace linnet::data
