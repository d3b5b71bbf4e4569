#include "linnet/data/tokenizer.h"

#include <doctest/doctest.h>

#include "linnet/core/atomic_file.h"
#include "support/real_data.h"
#include "support/temp_dir.h"
#include "support/vectors.h"

using namespace linnet;
using namespace linnet::data;
using test_support::TempDir;
using Tokens = std::vector<int32_t>;

TEST_CASE("a character tokenizer numbers code points from 4 on, in order") {
  const CharTokenizer t = CharTokenizer::of("b\u00e4a\nab");
  CHECK(t.vocab() == 8);
  CHECK(t.encode("ab\u00e4\n") == Tokens{5, 6, 7, 4});
  CHECK(t.encode("a?", {.begin = true, .end = true}) == Tokens{2, 5, 1, 3});
  CHECK(t.encode("").empty());
  CHECK(t.decode({2, 5, 1, 0, 7, 3}) == "a\uFFFD\u00e4");
  CHECK(t.decode({}) == "");
  CHECK_THROWS_WITH_AS(t.decode({8}), "char_tokenizer: token 8 given, 0 to 7 wanted", Error);
  CHECK_THROWS_AS(t.decode({-1}), Error);
  CHECK_THROWS_WITH_AS(t.encode("a\xFF"), "char_tokenizer: the text is not UTF-8 at byte 2", Error);
  CHECK_THROWS_AS(CharTokenizer::of("\xC3"), Error);
  CHECK(CharTokenizer().encode("a") == Tokens{1});
  CHECK(CharTokenizer::of("").vocab() == 4);
}

TEST_CASE("a character tokenizer survives a state dict and a text file") {
  TempDir dir;
  const std::string text = "Gr\u00fc\u00dfe, \U0001F600!\n\u0000";
  const CharTokenizer t = CharTokenizer::of(text);
  CharTokenizer loaded;
  loaded.load_state_dict(t.state_dict());
  CHECK(loaded.encode(text) == t.encode(text));
  CHECK(loaded.decode(t.encode(text)) == text);
  t.save(dir / "characters");
  CHECK(test_support::read_file(dir / "characters").starts_with("linnet characters 1\nU+000A\nU+0020\n"));
  CHECK(CharTokenizer::load(dir / "characters").encode(text) == t.encode(text));
}

TEST_CASE("a damaged vocabulary is refused, and changes nothing") {
  TempDir dir;
  CharTokenizer t = CharTokenizer::of("ab");
  for (const Tensor& bad :
       {Tensor::zeros({3}), Tensor::from<int32_t>({98, 97}, {2}), Tensor::from<int32_t>({97, 97}, {2}),
        Tensor::from<int32_t>({0xD800}, {1}), Tensor::from<int32_t>({-1}, {1}), Tensor::from<int32_t>({97}, {1, 1})}) {
    StateDict state;
    state.set("characters", bad);
    CHECK_THROWS_AS(t.load_state_dict(state), Error);
  }
  CHECK(t.encode("ab") == Tokens{4, 5});
  const std::string where = "char_tokenizer: " + (dir / "c");
  const auto load = [&](const std::string& text) {
    write_file(dir / "c", text);
    CharTokenizer::load(dir / "c");
  };
  CHECK_THROWS_WITH_AS(load("U+0041\n"), (where + ": the first line is not \"linnet characters 1\"").c_str(), Error);
  CHECK_THROWS_WITH_AS(load("linnet characters 1\nU+0041\nB\n"),
                       (where + ": line 3 is \"B\", a code point such as U+00E4 wanted").c_str(), Error);
  CHECK_THROWS_WITH_AS(load("linnet characters 1\nU+0042\nU+0041\n"),
                       (where + ": character 1, U+0041, follows U+0042; rising code points wanted").c_str(), Error);
  for (const char* line : {"U+", "U+110000", "U+FFFFFFFFF", "U+00 41", "U+-041", "U+D800", ""})
    CHECK_THROWS_AS(load(std::string("linnet characters 1\n") + line + "\n"), Error);
  CHECK_THROWS_AS(load(""), Error);
}

TEST_CASE("Tiny Shakespeare: 65 characters, and the text comes back") {
  const auto path = test_support::real_data_or_say("text/tinyshakespeare.txt");
  if (!path) return;
  const std::string text = test_support::read_file(*path);
  const CharTokenizer t = CharTokenizer::of(text);
  CHECK(t.vocab() == 65 + 4);
  const Tokens tokens = t.encode(text);
  CHECK(tokens.size() == 1115394);
  CHECK(t.decode(tokens) == text);
}
