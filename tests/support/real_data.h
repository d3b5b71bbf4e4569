// Real data sets: where they lie.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace test_support {

/// The file below $LINNET_DATA, else below ../shared/data beside the source tree; nothing, and a line that says so,
/// where there is none.
inline std::optional<std::string> real_data_or_say(const std::string& file) {
  const char* given = std::getenv("LINNET_DATA");
  const std::filesystem::path folder =
      given ? std::filesystem::path(given) : std::filesystem::path(LINNET_SOURCE_DIR) / ".." / "shared" / "data";
  if (std::filesystem::is_regular_file(folder / file)) return (folder / file).native();
  std::printf("a case skipped: no %s in $LINNET_DATA or ../shared/data\n", file.c_str());
  return std::nullopt;
}

}  // namespace test_support
