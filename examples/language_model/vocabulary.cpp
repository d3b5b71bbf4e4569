#include "language_model/vocabulary.h"

namespace language_model {

using linnet::data::kEnd;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  lines.push_back(text.substr(begin));
  return lines;
}

}  // namespace

Vocabulary Vocabulary::of(const std::string& text, int64_t subwords) {
  if (subwords == 0) return Vocabulary(Characters::of(text));
  return Vocabulary(Subwords::train(lines_of(text), {.vocab = subwords}));
}

const char* Vocabulary::file_name(int64_t subwords) { return subwords ? "tokenizer.model" : "characters.txt"; }

Vocabulary Vocabulary::load(const example::RunDirectory& run, int64_t subwords) {
  const std::string file = run.file(file_name(subwords));
  if (subwords == 0) return Vocabulary(Characters::load(file));
  return Vocabulary(Subwords::load(file));
}

void Vocabulary::save(const example::RunDirectory& run) const {
  const bool pieces = std::holds_alternative<Subwords>(tokenizer_);
  std::visit([&](const auto& tokenizer) { tokenizer.save(run.file(file_name(pieces))); }, tokenizer_);
}

int64_t Vocabulary::size() const {
  return std::visit([](const auto& tokenizer) { return tokenizer.vocab(); }, tokenizer_);
}

Tokens Vocabulary::encode(const std::string& text) const {
  if (const auto* characters = std::get_if<Characters>(&tokenizer_)) return characters->encode(text);
  Tokens tokens;
  for (const std::string& line : lines_of(text)) {
    const Tokens pieces = std::get<Subwords>(tokenizer_).encode(line, {.end = true});
    tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  }
  tokens.pop_back();  // the last line has no end
  return tokens;
}

std::string Vocabulary::decode(const Tokens& tokens) const {
  if (const auto* characters = std::get_if<Characters>(&tokenizer_)) return characters->decode(tokens);
  std::string text;
  Tokens line;
  for (int32_t token : tokens) {
    if (token != kEnd) {
      line.push_back(token);
      continue;
    }
    text += std::get<Subwords>(tokenizer_).decode(line) + "\n";
    line.clear();
  }
  return text + std::get<Subwords>(tokenizer_).decode(line);
}

bool Vocabulary::stands_alone(int32_t token) const {
  return token == kEnd || std::holds_alternative<Characters>(tokenizer_);
}

bool Vocabulary::is_text(int32_t token) const {
  return token > kEnd || (token == kEnd && std::holds_alternative<Subwords>(tokenizer_));
}

}  // namespace language_model
