// Reading the repository's own files, for tests that enforce its rules.
#pragma once
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace repo {

inline const std::filesystem::path kRoot = LINNET_SOURCE_DIR;
inline const std::vector<std::string> kLibraryFolders = {"core", "autograd", "ops", "nn", "optim", "models", "data"};

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return file ? text.str() : std::string();
}

/// The C++ files below folders of the repository, as paths from its root, sorted.
inline std::vector<std::string> sources(const std::vector<std::string>& folders) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    if (!std::filesystem::exists(kRoot / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".cpp" || extension == ".h" || extension == ".cu" || extension == ".cuh")
        paths.push_back(std::filesystem::relative(entry.path(), kRoot).generic_string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

inline bool is_header(const std::string& path) { return path.ends_with(".h") || path.ends_with(".cuh"); }

/// What is left of each match's given group.
inline std::vector<std::string> matches(const std::string& text, const std::string& pattern, size_t group = 1) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.push_back((*match)[group].str());
  return found;
}

/// The text without // comments. (A // inside a string literal is cut as well: no rule here looks at those.)
inline std::string without_comments(const std::string& text) {
  std::string code;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) code += line.substr(0, line.find("//")) + "\n";
  return code;
}

}  // namespace repo
