#include "linnet/data/utf8.h"

#include "linnet/core/error.h"

namespace linnet::data {

namespace {

struct Decoded {
  char32_t point;
  size_t bytes;  // 0: malformed
};

bool is_scalar(char32_t point) { return point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF); }

Decoded decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {0, 0};
  char32_t point = first & (0xFF >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    point = point << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return {point, point >= kSmallest[bytes] && is_scalar(point) ? bytes : 0};
}

}  // namespace

int64_t invalid_utf8_at(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = decode(text.substr(at)).bytes;
    if (bytes == 0) return static_cast<int64_t>(at);
    at += bytes;
  }
  return -1;
}

std::u32string code_points(const char* op, std::string_view text) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto [point, bytes] = decode(text.substr(at));
    LINNET_CHECK(bytes > 0, op, ": the text is not UTF-8 at byte ", at + 1);
    points.push_back(point);
    at += bytes;
  }
  return points;
}

void append_utf8(std::string& text, char32_t point) {
  if (!is_scalar(point)) point = 0xFFFD;
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;  // bytes after the first
  put((0xFF00 >> (more + 1) & 0xFF) | point >> (6 * more));
  for (int i = more - 1; i >= 0; --i) put(0x80 | (point >> (6 * i) & 0x3F));
}

}  // namespace linnet::data
