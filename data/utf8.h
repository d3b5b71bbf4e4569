// UTF-8: checking it and going through it by code points.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::data {

/// The byte at which the first malformed sequence begins (cut off, overlong, a surrogate, above U+10FFFF), or -1.
int64_t invalid_utf8_at(std::string_view text);

/// The code points of a text. Throws, naming the op and the byte, where it is not UTF-8.
std::u32string code_points(const char* op, std::string_view text);
/// Adds the 1 to 4 bytes of a code point; one that is none (a surrogate, above U+10FFFF) becomes U+FFFD.
void append_utf8(std::string& text, char32_t point);

}  // namespace linnet::data
