#include "linnet/data/subwords.h"

#include <doctest/doctest.h>

#include "linnet/core/atomic_file.h"
#include "linnet/core/random.h"
#include "linnet/data/text.h"
#include "support/arrays.h"
#include "support/real_data.h"
#include "support/temp_dir.h"
#include "support/vectors.h"

using namespace linnet;
using namespace linnet::data;
using test_support::TempDir;
using Tokens = std::vector<int32_t>;

namespace {

std::vector<std::string> small_text() {
  std::vector<std::string> lines;
  for (const char* who : {"ein Mann", "eine Frau", "das M\u00e4dchen", "der Junge"})
    for (const char* does : {"l\u00e4uft", "spielt", "schl\u00e4ft", "singt", "springt"})
      for (const char* where : {"auf der Stra\u00dfe", "im Gras", "im Haus", "am See"})
        lines.push_back(std::string(who) + " " + does + " " + where + ".");
  return lines;
}

const char* const kNoFault = "(no error was thrown)";

}  // namespace

TEST_CASE("subwords: what was encoded is decoded, by both kinds") {
  const auto lines = small_text();
  for (SubwordKind kind : {SubwordKind::unigram, SubwordKind::bpe}) {
    const SubwordTokenizer t = SubwordTokenizer::train(lines, {.vocab = 100, .kind = kind});
    CHECK(t.vocab() > 30);
    CHECK(t.vocab() <= 100);
    size_t tokens = 0, bytes = 0;
    for (const std::string& line : lines) {
      const Tokens encoded = t.encode(line);
      CHECK(t.decode(encoded) == line);
      tokens += encoded.size(), bytes += line.size();
    }
    CHECK(tokens < bytes);
    const Tokens one = t.encode("im Haus", {.begin = true, .end = true});
    CHECK(one.front() == kBegin);
    CHECK(one.back() == kEnd);
    CHECK(t.decode(one) == "im Haus");
    CHECK(t.encode("").empty());
    CHECK(t.decode({}) == "");
    CHECK(t.encode("Q")[1] == kUnknown);
    CHECK(t.piece(kPadding) == "<pad>");
    CHECK(t.piece(kUnknown) == "<unk>");
    // A function of lines and options.
    CHECK(SubwordTokenizer::train(lines, {.vocab = 100, .kind = kind}).encode(lines[7]) == t.encode(lines[7]));
  }
}

TEST_CASE("subwords: training on some lines is a function of the seed") {
  const auto lines = small_text();
  const auto model = [&](uint64_t seed) {
    return SubwordTokenizer::train(lines, {.vocab = 50, .lines = 20, .seed = seed})
        .state_dict()
        .get("model")
        .to_vector<uint8_t>();
  };
  CHECK(model(1) == model(1));
  CHECK(model(1) != model(2));
}

TEST_CASE("subwords survive a file and a state dict") {
  TempDir dir;
  std::string text;
  for (const std::string& line : small_text()) text += line + "\n";
  write_file(dir / "text", text);
  const SubwordTokenizer t = SubwordTokenizer::train_on_files({dir / "text"}, {.vocab = 60});
  t.save(dir / "model");
  for (const SubwordTokenizer& loaded :
       {SubwordTokenizer::load(dir / "model"), SubwordTokenizer::from(t.state_dict())}) {
    CHECK(loaded.vocab() == t.vocab());
    CHECK(loaded.encode("das Haus am See") == t.encode("das Haus am See"));
  }
}

TEST_CASE("subwords: what cannot be trained or used is an error") {
  const auto train = [](const std::vector<std::string>& lines, const SubwordOptions& options) {
    return test::message_of([&] { SubwordTokenizer::train(lines, options); });
  };
  CHECK(train({}, {.vocab = 60}) == "subword_tokenizer: 0 lines without text given to train on");
  CHECK(train({"", "  \t"}, {.vocab = 60}) == "subword_tokenizer: 2 lines without text given to train on");
  CHECK(train({"a b"}, {.vocab = 10}) == kNoFault);
  CHECK(train({"a"}, {.vocab = 4}) == "subword_tokenizer: vocab 4 given, 5 to 1000000 wanted");
  CHECK(train({"a", "b\xFF"}, {.vocab = 60}) == "subword_tokenizer: line 2 is not UTF-8 at byte 2");
  CHECK(train({"a"}, {.vocab = 60, .coverage = 0}) ==
        "subword_tokenizer: coverage 0 given, above 0 and at most 1 wanted");
  CHECK(train({"abcdefghijklmnopqrstuvwxyz"}, {.vocab = 10}).starts_with("subword_tokenizer: training: "));
  const SubwordTokenizer t = SubwordTokenizer::train(small_text(), {.vocab = 60});
  const std::string range = ", 0 to " + std::to_string(t.vocab() - 1) + " wanted";
  CHECK(test::message_of([&] { t.decode({5, -1}); }) == "subword_tokenizer: token -1 given" + range);
  CHECK(test::message_of([&] { t.piece(1000); }) == "subword_tokenizer: token 1000 given" + range);
  CHECK(test::message_of([&] { t.encode("a\xC3"); }) == "subword_tokenizer: the text is not UTF-8 at byte 2");
}

TEST_CASE("a damaged model is an error or still a model; nothing crashes") {
  TempDir dir;
  const std::string path = dir / "model", where = "subword_tokenizer: " + path + ": ";
  CHECK(test::message_of([&] { SubwordTokenizer::load(path); }) == where + "is no file");
  write_file(path, "");
  CHECK(test::message_of([&] { SubwordTokenizer::load(path); }) == where + "is empty");
  write_file(path, "no model at all");
  CHECK(test::message_of([&] { SubwordTokenizer::load(path); }) == where + "is no SentencePiece model, or cut off");

  SubwordTokenizer::train(small_text(), {.vocab = 60}).save(path);
  const std::string model = test_support::read_file(path);
  const auto use = [&](const std::string& bytes) {
    write_file(path, bytes);
    return test::message_of([&] {
      const SubwordTokenizer t = SubwordTokenizer::load(path);
      t.decode(t.encode("ein M\u00e4dchen \uFB01ng \u2460 im \uFF28aus \u00e9 e\u0301 \uFDFA"));
    });
  };
  CHECK(use(model) == kNoFault);
  Generator generator{11, 0, 0};
  const int64_t size = static_cast<int64_t>(model.size());
  for (int i = 0; i < 12; ++i) CHECK(use(model.substr(0, static_cast<size_t>(generator.below(size)))) != kNoFault);
  int refused = 0;
  for (int i = 0; i < 60; ++i) {
    std::string changed = model;
    // The pieces stand first; then, most of the file, the table of the normaliser.
    const int64_t at = i % 2 ? generator.below(size) : generator.below(2000);
    changed[static_cast<size_t>(at)] = static_cast<char>(generator.below(256));
    refused += use(changed) != kNoFault;
  }
  CHECK(refused > 5);
}

TEST_CASE("Multi30k: a joint vocabulary of German and English") {
  const auto de = test_support::real_data_or_say("translation/val.de.gz");
  const auto en = test_support::real_data_or_say("translation/val.en.gz");
  if (!de || !en) return;
  const SubwordTokenizer t = SubwordTokenizer::train_on_files({*de, *en}, {.vocab = 1000, .kind = SubwordKind::bpe});
  CHECK(t.vocab() == 1000);
  for (const std::string& line : read_lines(*de)) {
    const std::string normalised = t.decode(t.encode(line));
    CHECK(t.decode(t.encode(normalised)) == normalised);
  }
  CHECK(t.decode(t.encode("Eine Gruppe von M\u00e4nnern.")) == "Eine Gruppe von M\u00e4nnern.");
}
