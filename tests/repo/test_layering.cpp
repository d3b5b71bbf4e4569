// The arrows between folders, read off every include: core <- autograd <- ops <- nn <- models; core, autograd <- optim;
// core <- data.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "repo/sources.h"

namespace {

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"core", {"core"}},
    {"autograd", {"core", "autograd"}},
    {"ops", {"core", "autograd", "ops"}},
    {"nn", {"core", "autograd", "ops", "nn"}},
    {"models", {"core", "autograd", "ops", "nn", "models"}},
    {"optim", {"core", "autograd", "optim"}},
    {"data", {"core", "data"}},
};

// Each spelled "linnet/core/tensor.h" or <vector>, as it stands between the quotes or brackets.
std::vector<std::string> quoted_includes(const std::string& text) {
  return repo::matches(text, "#\\s*include\\s*\"([^\"]*)\"");
}
std::vector<std::string> bracket_includes(const std::string& text) {
  return repo::matches(text, "#\\s*include\\s*<([^>]*)>");
}

// What is wrong with this include, or nothing.
std::string layering_fault(const std::string& from_folder, const std::string& include) {
  if (include.find("../") != std::string::npos) return "climbs out of its folder";
  const std::vector<std::string> parts = repo::matches(include, R"(([^/]+))");
  if (parts.size() != 3 || parts[0] != "linnet") return "is not spelled linnet/<folder>/<file>";
  if (!kMayInclude.at(from_folder).count(parts[1])) return "is against the arrows";
  if (!std::filesystem::exists(repo::kRoot / parts[1] / parts[2])) return "names no file";
  return "";
}

// Third parties' headers stay out of linnet's own: a user's program needs none of them.
std::string user_header_fault(const std::string& include) {
  static const std::regex foreign(
      R"(.*(cuda|cublas|cudnn|nvrtc|curand|cblas|openblas|lapack|omp\.h|nlohmann|CLI|doctest|sentencepiece|zlib).*)");
  return std::regex_match(include, foreign) ? "brings a third party to every user" : "";
}

}  // namespace

TEST_CASE("library files include only what the arrows allow") {
  int includes = 0;
  for (const std::string& path : repo::sources(repo::kLibraryFolders)) {
    if (path == "core/cuda.h") continue;  // the one file that brings CUDA, or its emulation
    const std::string text = repo::read(repo::kRoot / path), folder = path.substr(0, path.find('/'));
    for (const std::string& include : quoted_includes(text)) {
      ++includes;
      INFO(path, " includes ", include);
      CHECK(layering_fault(folder, include) == "");
    }
    for (const std::string& include : bracket_includes(text)) {
      INFO(path, " includes ", include);
      CHECK(include.rfind("linnet/", 0) != 0);
      if (repo::is_header(path)) CHECK(user_header_fault(include) == "");
    }
  }
  CHECK(includes > 50);
}

TEST_CASE("the rule sees what breaks it") {
  CHECK(layering_fault("core", "linnet/autograd/tape.h") == "is against the arrows");
  CHECK(layering_fault("optim", "linnet/nn/module.h") == "is against the arrows");
  CHECK(layering_fault("data", "linnet/autograd/variable.h") == "is against the arrows");
  CHECK(layering_fault("ops", "../core/tensor.h") == "climbs out of its folder");
  CHECK(layering_fault("ops", "matmul.h") == "is not spelled linnet/<folder>/<file>");
  CHECK(layering_fault("ops", "linnet/core/no_such.h") == "names no file");
  CHECK(layering_fault("autograd", "linnet/core/tensor.h") == "");
  for (const char* header : {"cuda_runtime.h", "cublas_v2.h", "cblas.h", "omp.h", "nlohmann/json.hpp", "zlib.h",
                             "sentencepiece_processor.h"})
    CHECK(user_header_fault(header) != "");
  for (const char* header : {"vector", "functional", "initializer_list"}) CHECK(user_header_fault(header) == "");
}

TEST_CASE("nothing includes by climbing") {
  for (const std::string& path :
       repo::sources({"core", "autograd", "ops", "nn", "optim", "models", "data", "tests", "examples", "bench"})) {
    INFO(path);
    for (const std::string& include : quoted_includes(repo::read(repo::kRoot / path)))
      CHECK(include.find("../") == std::string::npos);
  }
}

TEST_CASE("linnet.h reaches every header that a user calls") {
  std::set<std::string> reached;
  std::vector<std::string> open = {"linnet.h"};
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    if (!reached.insert(path).second) continue;
    for (const std::string& include : quoted_includes(repo::read(repo::kRoot / path)))
      CHECK(include != "linnet/core/cuda.h");
    for (const std::string& include : quoted_includes(repo::read(repo::kRoot / path)))
      open.push_back(include.substr(include.find('/') + 1));
  }
  for (const std::string& path : repo::sources({"autograd", "ops", "nn", "optim", "models", "data"})) {
    const std::string text = repo::read(repo::kRoot / path), first_words = text.substr(0, text.find("#pragma once"));
    if (!path.ends_with(".h") || path.ends_with("_kernels.h") || first_words.find("Private to") != std::string::npos)
      continue;
    INFO(path,
         " is included by linnet.h neither directly nor through others; a header not for users says 'Private to ...' "
         "before its #pragma once");
    CHECK(reached.count(path) == 1);
  }
}

TEST_CASE("files stay short enough to read at one go") {
  for (const std::string& path : repo::sources(repo::kLibraryFolders)) {
    const std::string text = repo::read(repo::kRoot / path);
    const auto lines = std::count(text.begin(), text.end(), '\n');
    INFO(path, " has ", lines, " lines; 40 to 250 is the aim, and one idea a file");
    CHECK(lines <= 400);
  }
}
