// Every op that records itself has a gradient check: each record("name", ...) in the library needs a
// check_gradients("name", ...) in the tests (tests/support/gradients.h). A function that records several ops, by a
// variable, says which just before: // records: sum, mean
#include <doctest/doctest.h>

#include <set>

#include "repo/sources.h"

namespace {

const char* const kLiteralName = R"re(\brecord(?:_many)?\s*\(\s*"([^"]*)")re";
const char* const kStatedNames = R"(//\s*records: ([\w, ]+))";
const char* const kAnyCall = R"(\b(record(?:_many)?\s*\())";

std::set<std::string> names(const std::string& text, const char* pattern) {
  const std::vector<std::string> found = repo::matches(repo::without_comments(text), pattern);
  return {found.begin(), found.end()};
}

// ops/elementwise.cpp records by the names in the list of elementwise ops.
std::set<std::string> elementwise_names() {
  const std::string list = repo::without_comments(repo::read(repo::kRoot / "core/functors.h"));
  const size_t begin = list.find("#define LINNET_UNARY"), end = list.find("#define LINNET_COMPARE");
  REQUIRE(begin < end);
  REQUIRE(end != std::string::npos);
  const std::vector<std::string> found = repo::matches(list.substr(begin, end - begin), R"(X\([A-Z]\w*, (\w+))");
  return {found.begin(), found.end()};
}

}  // namespace

TEST_CASE("each recorded op has a gradient check") {
  std::set<std::string> recorded = elementwise_names(), checked;
  CHECK(recorded.size() > 15);
  for (const std::string& path : repo::sources({"core", "ops", "nn", "optim", "models"})) {
    const std::string text = repo::read(repo::kRoot / path);
    const std::set<std::string> found = names(text, kLiteralName);
    recorded.insert(found.begin(), found.end());
    if (path == "ops/elementwise.cpp") continue;
    const std::vector<std::string> stated = repo::matches(text, kStatedNames);
    for (const std::string& list : stated)
      for (const std::string& name : repo::matches(list, R"((\w+))")) recorded.insert(name);
    INFO(path, ": record takes the op's name as a literal, or a comment states it");
    const std::string code = repo::without_comments(text);
    CHECK(repo::matches(code, kLiteralName).size() + stated.size() == repo::matches(code, kAnyCall).size());
  }
  for (const std::string& path : repo::sources({"tests"})) {
    if (path.rfind("tests/repo/", 0) == 0) continue;
    const std::set<std::string> found =
        names(repo::read(repo::kRoot / path), R"re(\bcheck_gradients\s*\(\s*"([^"]*)")re");
    checked.insert(found.begin(), found.end());
  }
  for (const std::string& name : recorded) {
    INFO("op ", name, " has no check_gradients(\"", name, "\", ...) in tests/");
    CHECK(checked.count(name) == 1);
  }
}

TEST_CASE("the scan reads what it should") {
  CHECK(names("return record(\"a\", y);  // record(\"b\"", kLiteralName) == std::set<std::string>{"a"});
  CHECK(names("record_many(\n    \"c\", {y}", kLiteralName) == std::set<std::string>{"c"});
  CHECK(names("my_record(\"d\")", kLiteralName).empty());
}
