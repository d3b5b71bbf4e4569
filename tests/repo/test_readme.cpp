// The README tells the truth: its programs are files that CI compiles, its commands are ones that CI runs, its links
// lead somewhere.
#include <doctest/doctest.h>

#include "repo/sources.h"

namespace {

// The fenced blocks of a language, without the fences.
std::vector<std::string> blocks(const std::string& markdown, const std::string& language) {
  std::vector<std::string> found;
  const std::string open = "```" + language + "\n", close = "```\n";
  for (size_t at = markdown.find(open); at != std::string::npos; at = markdown.find(open, at)) {
    at += open.size();
    const size_t end = markdown.find(close, at);
    found.push_back(markdown.substr(at, end - at));
    at = end;
  }
  return found;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

// Without a comment and the blanks around.
std::string command(const std::string& line) {
  const std::string code = line.substr(0, line.find('#'));
  const size_t first = code.find_first_not_of(' ');
  return first == std::string::npos ? "" : code.substr(first, code.find_last_not_of(' ') - first + 1);
}

}  // namespace

TEST_CASE("the README's programs are the consumer project that a test builds") {
  const std::string readme = repo::read(repo::kRoot / "README.md");
  const std::vector<std::string> cpp = blocks(readme, "cpp"), cmake = blocks(readme, "cmake");
  REQUIRE(cpp.size() == 1);
  REQUIRE(cmake.size() == 1);
  CHECK(cpp[0] == repo::read(repo::kRoot / "tests/consumer/main.cpp"));
  CHECK(cmake[0] == repo::read(repo::kRoot / "tests/consumer/CMakeLists.txt"));
}

TEST_CASE("the README's commands are ones that CI runs") {
  const std::string readme = repo::read(repo::kRoot / "README.md");
  std::vector<std::string> ci;
  for (const std::string& line : lines(repo::read(repo::kRoot / ".ci/run"))) ci.push_back(command(line));
  int commands = 0;
  for (const std::string& block : blocks(readme, "sh")) {
    for (const std::string& line : lines(block)) {
      const std::string wanted = command(line);
      if (wanted.empty()) continue;
      ++commands;
      INFO(wanted, " is in the README; .ci/run has no line that begins with it");
      CHECK(std::any_of(ci.begin(), ci.end(),
                        [&](const std::string& run) { return run == wanted || run.rfind(wanted + " ", 0) == 0; }));
    }
  }
  CHECK(commands >= 2);
}

TEST_CASE("the links of the README and the docs lead to files") {
  std::vector<std::filesystem::path> pages = {"README.md"};
  if (std::filesystem::exists(repo::kRoot / "docs"))
    for (const auto& entry : std::filesystem::directory_iterator(repo::kRoot / "docs"))
      if (entry.path().extension() == ".md") pages.push_back(std::filesystem::relative(entry.path(), repo::kRoot));
  for (const auto& page : pages) {
    for (const std::string& link : repo::matches(repo::read(repo::kRoot / page), R"(\]\(([^)#: ]+)(#[^)]*)?\))")) {
      INFO(page.string(), " links to ", link);
      CHECK(std::filesystem::exists(repo::kRoot / page.parent_path() / link));
    }
  }
}
