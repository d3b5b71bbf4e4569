// Against sacreBLEU's own values: bleu.json, written by make_bleu.py.
#include "linnet/data/bleu.h"

#include <doctest/doctest.h>

#include "linnet/core/error.h"
#include "support/vectors.h"

using namespace linnet;
using namespace linnet::data;

namespace {

nlohmann::json stored() { return test_support::read_json(std::string(LINNET_SOURCE_DIR) + "/tests/data/bleu.json"); }

}  // namespace

TEST_CASE("lines are cut into words as sacreBLEU cuts them") {
  int lines = 0;
  const nlohmann::json all = stored();
  for (const auto& entry : all.at("words")) {
    const std::string line = entry.at("line");
    INFO(line);
    CHECK(bleu_words(line) == entry.at("words").get<std::vector<std::string>>());
    ++lines;
  }
  CHECK(lines > 15);
}

TEST_CASE("BLEU is what sacreBLEU says, part by part") {
  int corpora = 0;
  const nlohmann::json all = stored();
  for (const auto& [name, entry] : all.at("corpora").items()) {
    INFO(name);
    const Bleu b = bleu(entry.at("translations").get<std::vector<std::string>>(),
                        entry.at("references").get<std::vector<std::string>>());
    CHECK(b.score == doctest::Approx(entry.at("score").get<double>()).epsilon(1e-12));
    CHECK(b.brevity_penalty == doctest::Approx(entry.at("bp").get<double>()).epsilon(1e-12));
    CHECK(b.length == entry.at("length").get<int64_t>());
    CHECK(b.reference_length == entry.at("reference_length").get<int64_t>());
    for (size_t n = 0; n < 4; ++n) {
      CHECK(b.precisions[n] == doctest::Approx(entry.at("precisions").at(n).get<double>()).epsilon(1e-12));
      CHECK(b.matches[n] == entry.at("matches").at(n).get<int64_t>());
      CHECK(b.totals[n] == entry.at("totals").at(n).get<int64_t>());
    }
    ++corpora;
  }
  CHECK(corpora > 10);
}

TEST_CASE("BLEU says what it cannot count") {
  CHECK_THROWS_WITH_AS(bleu({"a"}, {"a", "b"}),
                       "bleu: 1 translations and 2 references given, as many and at least 1 wanted", Error);
  CHECK_THROWS_AS(bleu({}, {}), Error);
  CHECK_THROWS_WITH_AS(bleu({"a\xFF"}, {"a"}), "bleu: the text is not UTF-8 at byte 2", Error);
}
