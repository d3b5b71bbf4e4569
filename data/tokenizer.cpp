#include "linnet/data/tokenizer.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "linnet/core/atomic_file.h"
#include "linnet/data/text.h"
#include "linnet/data/utf8.h"

namespace linnet::data {

namespace {

constexpr int32_t kFirst = 4;  // the token of the first code point
constexpr const char* kTitle = "linnet characters 1";

std::string spelling(char32_t point) {
  char text[16];
  std::snprintf(text, sizeof text, "U+%04X", static_cast<unsigned>(point));
  return text;
}

}  // namespace

CharTokenizer CharTokenizer::of(std::string_view text) {
  std::u32string characters = code_points("char_tokenizer", text);
  std::sort(characters.begin(), characters.end());
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  CharTokenizer result;
  result.set_characters("char_tokenizer", std::move(characters));
  return result;
}

void CharTokenizer::set_characters(const char* op, std::u32string characters) {
  for (size_t i = 0; i < characters.size(); ++i) {
    const char32_t point = characters[i];
    LINNET_CHECK(point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF), op, ": character ", i, " is ",
                 spelling(point), ", which is no code point of a text");
    LINNET_CHECK(i == 0 || characters[i - 1] < point, op, ": character ", i, ", ", spelling(point), ", follows ",
                 spelling(characters[i - 1]), "; rising code points wanted");
  }
  token_of_.clear();
  for (size_t i = 0; i < characters.size(); ++i) token_of_[characters[i]] = kFirst + static_cast<int32_t>(i);
  characters_ = std::move(characters);
}

std::vector<int32_t> CharTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<int32_t> tokens;
  if (options.begin) tokens.push_back(kBegin);
  for (char32_t point : code_points("char_tokenizer", text)) {
    const auto at = token_of_.find(point);
    tokens.push_back(at == token_of_.end() ? kUnknown : at->second);
  }
  if (options.end) tokens.push_back(kEnd);
  return tokens;
}

std::string CharTokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (int32_t token : tokens) {
    LINNET_CHECK(token >= 0 && token < vocab(), "char_tokenizer: token ", token, " given, 0 to ", vocab() - 1,
                 " wanted");
    if (token >= kFirst)
      append_utf8(text, characters_[static_cast<size_t>(token - kFirst)]);
    else if (token == kUnknown)
      append_utf8(text, 0xFFFD);
  }
  return text;
}

StateDict CharTokenizer::state_dict() const {
  StateDict state;
  state.set("characters", Tensor::from(std::vector<int32_t>(characters_.begin(), characters_.end()),
                                       {static_cast<int64_t>(characters_.size())}, Device::cpu));
  return state;
}

void CharTokenizer::load_state_dict(const StateDict& state) {
  const Tensor& points = state.get("characters");
  LINNET_CHECK(points.dtype() == Dtype::i32 && points.rank() == 1, "char_tokenizer: characters are ", points.dtype(),
               " ", points.shape(), ", i32 of one axis wanted");
  std::u32string characters;
  for (int32_t point : points.to_vector<int32_t>()) characters.push_back(static_cast<char32_t>(point));
  set_characters("char_tokenizer", std::move(characters));
}

void CharTokenizer::save(const std::string& path) const {
  std::string text = std::string(kTitle) + "\n";
  for (char32_t point : characters_) text += spelling(point) + "\n";
  write_file(path, text);
}

CharTokenizer CharTokenizer::load(const std::string& path) {
  const std::string where = "char_tokenizer: " + path;
  const std::vector<std::string> lines = read_lines(path, {.file_bytes = 16 << 20, .line_bytes = 64});
  LINNET_CHECK(!lines.empty() && lines[0] == kTitle, where, ": the first line is not \"", kTitle, "\"");
  std::u32string characters;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string& line = lines[i];
    uint32_t point = 0;
    const char* end = line.data() + line.size();
    const bool number = line.starts_with("U+") && line.size() > 2 &&
                        std::from_chars(line.data() + 2, end, point, 16) == std::from_chars_result{end, std::errc()};
    LINNET_CHECK(number, where, ": line ", i + 1, " is \"", line, "\", a code point such as U+00E4 wanted");
    characters.push_back(point);
  }
  CharTokenizer result;
  result.set_characters(where.c_str(), std::move(characters));
  return result;
}

}  // namespace linnet::data
