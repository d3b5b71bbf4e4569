// Public test vectors: where they lie, and reading of their .npy and .json files.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "linnet/core/tensor.h"

namespace test_support {

/// $LINNET_TEST_DATA, else ../shared/vectors beside the source tree; nothing where neither exists.
inline std::optional<std::filesystem::path> vectors_dir() {
  if (const char* given = std::getenv("LINNET_TEST_DATA"); given && std::filesystem::is_directory(given)) return given;
  std::filesystem::path beside = std::filesystem::path(LINNET_SOURCE_DIR) / ".." / "shared" / "vectors";
  if (std::filesystem::is_directory(beside)) return beside;
  return std::nullopt;
}

/// The same, with a line that says so where there are none. A file whose every case needs vectors then counts as
/// skipped in ctest (see tests/CMakeLists.txt).
inline std::optional<std::filesystem::path> vectors_dir_or_say(const char* what) {
  auto dir = vectors_dir();
  if (!dir) std::printf("%s: every case skipped, no vectors in $LINNET_TEST_DATA or ../shared/vectors\n", what);
  return dir;
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  LINNET_CHECK(in.good(), "read_file: cannot open ", path);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline nlohmann::json read_json(const std::filesystem::path& path) { return nlohmann::json::parse(read_file(path)); }

namespace detail {
template <class From, class To>
linnet::Tensor tensor_from_bytes(const char* bytes, const linnet::Shape& shape, const std::filesystem::path& path) {
  std::vector<To> values(static_cast<size_t>(shape.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes + i * sizeof(From), sizeof(From));
    values[i] = static_cast<To>(value);
    if constexpr (std::is_integral_v<From>)
      LINNET_CHECK(static_cast<From>(values[i]) == value && (values[i] < To(0)) == (value < From(0)),
                   "read_npy: ", path, " holds ", value, ", which i32 cannot hold");
  }
  return linnet::Tensor::from(values, shape);
}
}  // namespace detail

/// A .npy array as a tensor: f4, f8 as they are; i1, i2, i4, i8, u2, u4, u8 as i32 where every value fits (else an
/// Error); b1 and u1 as u8. Row-major and little-endian only.
inline linnet::Tensor read_npy(const std::filesystem::path& path) {
  std::string file = read_file(path);
  LINNET_CHECK(file.size() >= 12 && file.compare(0, 6, "\x93NUMPY") == 0, "read_npy: ", path, " is not a .npy file");
  size_t width = file[6] == 1 ? 2 : 4, header_bytes = 0;
  std::memcpy(&header_bytes, file.data() + 8, width);
  size_t begin = 8 + width + header_bytes;
  LINNET_CHECK(begin <= file.size(), "read_npy: ", path, " is cut off");
  std::string header = file.substr(8 + width, header_bytes);
  auto after = [&](const std::string& key) {
    size_t at = header.find("'" + key + "':");
    LINNET_CHECK(at != std::string::npos, "read_npy: ", path, " has no ", key);
    return header.substr(at + key.size() + 3);
  };
  LINNET_CHECK(after("fortran_order").find("False") < 3, "read_npy: ", path, " is column-major");
  std::string type = after("descr"), sizes = after("shape");
  type = type.substr(type.find('\'') + 1);
  type = type.substr(0, type.find('\''));
  LINNET_CHECK(type.size() == 3 && type[0] != '>', "read_npy: ", path, " has dtype ", type);
  type = type.substr(1);
  sizes = sizes.substr(sizes.find('(') + 1);
  std::istringstream in(sizes.substr(0, sizes.find(')')));
  linnet::Shape shape;
  for (std::string size; std::getline(in, size, ',');)
    if (size.find_first_of("0123456789") != std::string::npos) shape.push_back(std::stoll(size));
  LINNET_CHECK(file.size() - begin == static_cast<size_t>(shape.numel()) * static_cast<size_t>(type[1] - '0'),
               "read_npy: ", path, " holds ", file.size() - begin, " bytes for shape ", shape);
  const char* bytes = file.data() + begin;
  if (type == "f4") return detail::tensor_from_bytes<float, float>(bytes, shape, path);
  if (type == "f8") return detail::tensor_from_bytes<double, double>(bytes, shape, path);
  if (type == "i1") return detail::tensor_from_bytes<int8_t, int32_t>(bytes, shape, path);
  if (type == "i2") return detail::tensor_from_bytes<int16_t, int32_t>(bytes, shape, path);
  if (type == "i4") return detail::tensor_from_bytes<int32_t, int32_t>(bytes, shape, path);
  if (type == "i8") return detail::tensor_from_bytes<int64_t, int32_t>(bytes, shape, path);
  if (type == "u2") return detail::tensor_from_bytes<uint16_t, int32_t>(bytes, shape, path);
  if (type == "u4") return detail::tensor_from_bytes<uint32_t, int32_t>(bytes, shape, path);
  if (type == "u8") return detail::tensor_from_bytes<uint64_t, int32_t>(bytes, shape, path);
  if (type == "b1" || type == "u1") return detail::tensor_from_bytes<uint8_t, uint8_t>(bytes, shape, path);
  linnet::fail("read_npy: ", path, " has dtype ", type);
}

}  // namespace test_support
