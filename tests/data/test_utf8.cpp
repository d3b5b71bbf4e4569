#include "linnet/data/utf8.h"

#include <doctest/doctest.h>

#include "linnet/core/error.h"

using namespace linnet;
using namespace linnet::data;

TEST_CASE("every code point survives the way to UTF-8 and back") {
  for (char32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point == 0xD800) point = 0xE000;  // surrogates are no characters
    std::string text;
    append_utf8(text, point);
    const std::u32string back = code_points("test", text);
    if (back.size() != 1 || back[0] != point) FAIL("code point ", static_cast<uint32_t>(point));
  }
  std::string text;
  append_utf8(text, 0xD800);
  append_utf8(text, 0x110000);
  CHECK(text == "\uFFFD\uFFFD");
  CHECK(code_points("test", "").empty());
  CHECK(code_points("test", "a\u00e4\u20ac\U0001F600") == U"a\u00e4\u20ac\U0001F600");
}

TEST_CASE("malformed UTF-8 is found where it begins") {
  using namespace std::string_literals;
  CHECK(invalid_utf8_at("") == -1);
  CHECK(invalid_utf8_at("a\0b"s) == -1);
  CHECK(invalid_utf8_at("\uFFFF\U0010FFFF") == -1);
  for (const std::string& bad :
       {"\x80"s, "\xC0\x80"s, "\xC1\xBF"s, "\xE0\x80\x80"s, "\xE0\x9F\xBF"s, "\xF0\x80\x80\x80"s, "\xF0\x8F\xBF\xBF"s,
        "\xED\xA0\x80"s, "\xED\xBF\xBF"s, "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s, "\xFF"s, "\xC3"s, "\xE2\x82"s,
        "\xF0\x9F\x98"s, "\xC3\x41"s, "\xE2\x28\xA1"s}) {
    CHECK(invalid_utf8_at(bad) == 0);
    CHECK(invalid_utf8_at("\u00e4b" + bad + "c") == 3);
  }
  CHECK_THROWS_WITH_AS(code_points("test", "ab\xFF"), "test: the text is not UTF-8 at byte 3", Error);
}
