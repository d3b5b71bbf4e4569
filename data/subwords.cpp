#include "linnet/data/subwords.h"

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "linnet/core/atomic_file.h"
#include "linnet/core/random.h"
#include "linnet/data/sentencepiece_file.h"
#include "linnet/data/text.h"
#include "linnet/data/utf8.h"

namespace linnet::data {

struct SubwordTokenizer::Model {
  std::string bytes;
  sentencepiece::SentencePieceProcessor processor;
};

namespace {

constexpr int64_t kMaxModel = int64_t(256) << 20;  // bytes: no real one has a tenth of it
constexpr const char* kOp = "subword_tokenizer";

/// The lines as SentencePiece asks for them.
class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<const std::string*>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return *lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<const std::string*>& lines_;
  size_t at_ = 0;
};

/// `count` of the lines at random, in their order.
std::vector<const std::string*> chosen(const std::vector<std::string>& lines, const SubwordOptions& options) {
  Generator generator{options.seed, stream_of("data.subwords"), 0};
  std::vector<const std::string*> result;
  int64_t wanted = static_cast<int64_t>(lines.size()), left = wanted;
  if (options.lines > 0) wanted = std::min(wanted, options.lines);
  for (const std::string& line : lines)  // selection sampling: Knuth, vol. 2, algorithm S
    if (generator.below(left--) < wanted) result.push_back(&line), --wanted;
  return result;
}

void check(const std::vector<std::string>& lines, const SubwordOptions& options) {
  LINNET_CHECK(options.vocab > 4 && options.vocab <= 1'000'000, kOp, ": vocab ", options.vocab,
               " given, 5 to 1000000 wanted");
  LINNET_CHECK(options.coverage > 0 && options.coverage <= 1, kOp, ": coverage ", options.coverage,
               " given, above 0 and at most 1 wanted");
  LINNET_CHECK(options.lines >= 0, kOp, ": ", options.lines, " lines to train on given, 0 or more wanted");
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t fault = invalid_utf8_at(lines[i]);
    LINNET_CHECK(fault < 0, kOp, ": line ", i + 1, " is not UTF-8 at byte ", fault + 1);
  }
}

/// Letters, digits and the like: not only blanks and control characters, of which SentencePiece keeps none.
bool has_text(const std::string& line) {
  return std::any_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7F; });
}

template <class Status>
void check_status(const std::string& where, const Status& status) {
  LINNET_CHECK(status.ok(), where, "SentencePiece says: ", status.ToString());
}

}  // namespace

SubwordTokenizer SubwordTokenizer::parse(const std::string& where, std::string bytes) {
  const std::string fault = bytes.empty() ? "is empty" : sentencepiece_fault(bytes);
  LINNET_CHECK(fault.empty(), where, fault);
  auto model = std::make_shared<Model>();
  model->bytes = std::move(bytes);
  auto& processor = model->processor;
  check_status(where, processor.LoadFromSerializedProto(model->bytes));
  const bool special = processor.pad_id() == kPadding && processor.unk_id() == kUnknown &&
                       processor.bos_id() == kBegin && processor.eos_id() == kEnd;
  LINNET_CHECK(special, where, "padding, unknown, begin and end are ", processor.pad_id(), ", ", processor.unk_id(),
               ", ", processor.bos_id(), " and ", processor.eos_id(), ", 0 to 3 wanted");
  return SubwordTokenizer(std::move(model));
}

SubwordTokenizer SubwordTokenizer::train(const std::vector<std::string>& lines, const SubwordOptions& options) {
  check(lines, options);
  const std::vector<const std::string*> some = chosen(lines, options);
  LINNET_CHECK(std::any_of(some.begin(), some.end(), [](auto* line) { return has_text(*line); }), kOp, ": ",
               some.size(), " lines without text given to train on");
  size_t longest = 0;
  for (const std::string* line : some) longest = std::max(longest, line->size());
  const std::unordered_map<std::string, std::string> settings = {
      {"model_type", options.kind == SubwordKind::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.vocab)},
      {"hard_vocab_limit", "false"},
      {"character_coverage", std::to_string(options.coverage)},
      {"max_sentence_length", std::to_string(std::max<size_t>(longest + 1, 10))},  // or longer lines would be left out
      {"num_threads", "1"},
      {"pad_id", std::to_string(kPadding)},
      {"unk_id", std::to_string(kUnknown)},
      {"bos_id", std::to_string(kBegin)},
      {"eos_id", std::to_string(kEnd)},
      {"minloglevel", "2"},
  };
  Sentences sentences(some);
  std::string model;
  const std::string where = std::string(kOp) + ": training: ";
  check_status(where, sentencepiece::SentencePieceTrainer::Train(settings, &sentences, &model));
  return parse(where, std::move(model));
}

SubwordTokenizer SubwordTokenizer::train_on_files(const std::vector<std::string>& paths,
                                                  const SubwordOptions& options) {
  std::vector<std::string> lines;
  for (const std::string& path : paths)
    for (std::string& line : read_lines(path)) lines.push_back(std::move(line));
  return train(lines, options);
}

int64_t SubwordTokenizer::vocab() const { return model_->processor.GetPieceSize(); }

std::vector<int32_t> SubwordTokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const int64_t fault = invalid_utf8_at(text);
  LINNET_CHECK(fault < 0, kOp, ": the text is not UTF-8 at byte ", fault + 1);
  std::vector<int> pieces;
  check_status(std::string(kOp) + ": encode: ", model_->processor.Encode({text.data(), text.size()}, &pieces));
  std::vector<int32_t> tokens;
  if (options.begin) tokens.push_back(kBegin);
  tokens.insert(tokens.end(), pieces.begin(), pieces.end());
  if (options.end) tokens.push_back(kEnd);
  return tokens;
}

const std::string& SubwordTokenizer::piece(int32_t token) const {
  LINNET_CHECK(token >= 0 && token < vocab(), kOp, ": token ", token, " given, 0 to ", vocab() - 1, " wanted");
  return model_->processor.IdToPiece(token);
}

std::string SubwordTokenizer::decode(const std::vector<int32_t>& tokens) const {
  for (int32_t token : tokens) piece(token);
  std::string text;
  check_status(std::string(kOp) + ": decode: ",
               model_->processor.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text));
  return text;
}

void SubwordTokenizer::save(const std::string& path) const { write_file(path, model_->bytes); }

SubwordTokenizer SubwordTokenizer::load(const std::string& path) {
  const std::string where = std::string(kOp) + ": " + path + ": ";
  std::error_code fault;
  LINNET_CHECK(std::filesystem::is_regular_file(path, fault), where, "is no file");
  const auto size = std::filesystem::file_size(path, fault);
  LINNET_CHECK(!fault && size <= static_cast<uint64_t>(kMaxModel), where, "has more than ", kMaxModel, " bytes");
  std::string bytes(size, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  LINNET_CHECK(file.good(), where, "cannot be read");
  return parse(where, std::move(bytes));
}

StateDict SubwordTokenizer::state_dict() const {
  const std::vector<uint8_t> bytes(model_->bytes.begin(), model_->bytes.end());
  StateDict state;
  state.set("model", Tensor::from(bytes, {static_cast<int64_t>(bytes.size())}, Device::cpu));
  return state;
}

SubwordTokenizer SubwordTokenizer::from(const StateDict& state) {
  const std::vector<uint8_t> bytes = state.get("model").to_vector<uint8_t>();
  return parse(std::string(kOp) + ": the state's model ", std::string(bytes.begin(), bytes.end()));
}

}  // namespace linnet::data
