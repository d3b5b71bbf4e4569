// Documents show code that exists: each of their blocks stands word for word in a source file.
#include <doctest/doctest.h>

#include "repo/sources.h"

namespace {

void check_pieces(const std::string& document, int least) {
  const std::string text = repo::read(repo::kRoot / document);
  const std::string open = "```cpp\n", close = "```\n";
  int pieces = 0;
  for (size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    const size_t end = text.find(close, at);
    REQUIRE(end != std::string::npos);
    const std::string piece = text.substr(at, end - at);
    bool found = false;
    for (const std::string& path : repo::sources({"core", "ops", "examples", "tests/ops", "tests/nn"}))
      if (!found) {
        std::string source = repo::read(repo::kRoot / path);
        // A row of a list goes on with a backslash, which the page leaves out.
        source = std::regex_replace(source, std::regex(R"( *\\\n)"), "\n");
        found = source.find(piece) != std::string::npos;
      }
    INFO(piece);
    CHECK(found);
    ++pieces;
    at = end;
  }
  CHECK(pieces >= least);
}

}  // namespace

TEST_CASE("every piece of code in docs/adding_an_op.md stands in the sources") {
  check_pieces("docs/adding_an_op.md", 6);
}
TEST_CASE("every piece of code in docs/attention.md stands in the sources") { check_pieces("docs/attention.md", 1); }
