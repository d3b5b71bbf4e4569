// TempDir: a directory for one test, removed at its end with all that is in it.
#pragma once
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace test_support {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "linnet-test-XXXXXX").native();
    if (!::mkdtemp(pattern.data())) throw std::filesystem::filesystem_error("mkdtemp", pattern, std::error_code());
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code fault;
    std::filesystem::remove_all(path_, fault);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).native(); }
  const std::filesystem::path& path() const { return path_; }
  /// The names of all files in it, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) result.push_back(entry.path().filename());
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace test_support
