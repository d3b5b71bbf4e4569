#include "linnet/data/bleu.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "linnet/core/error.h"
#include "linnet/data/utf8.h"

namespace linnet::data {

namespace {

bool between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }
bool is_digit(char32_t c) { return between(c, '0', '9'); }

/// What Python's str.split takes for a blank.
bool is_blank(char32_t c) {
  return between(c, 9, 13) || between(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

char32_t lower(char32_t c) {
  if (between(c, 'A', 'Z') || (between(c, 0xC0, 0xDE) && c != 0xD7)) return c + 32;
  // Pairs of a capital and, next to it, its small letter: capitals are even here, odd there.
  if (between(c, 0x100, 0x137) || between(c, 0x14A, 0x177) || between(c, 0x1E00, 0x1E95) || between(c, 0x1EA0, 0x1EFF))
    return c | 1;
  if (between(c, 0x139, 0x148) || between(c, 0x179, 0x17E)) return c + c % 2;
  if (c == 0x178) return 0xFF;
  if (c == 0x1E9E) return 0xDF;
  if (between(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (between(c, 0x388, 0x38A)) return c + 37;
  if (c == 0x386) return 0x3AC;
  if (c == 0x38C) return 0x3CC;
  if (c == 0x38E || c == 0x38F) return c + 63;
  if (between(c, 0x410, 0x42F)) return c + 32;
  if (between(c, 0x400, 0x40F)) return c + 80;
  if (between(c, 0x460, 0x481) || between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F)) return c | 1;
  return c;
}

std::u32string lower(const std::u32string& text) {
  std::u32string result;
  for (char32_t c : text) {
    if (c == 0x130)
      result += U"i\u0307";  // I with a dot becomes two code points
    else
      result += lower(c);
  }
  return result;
}

void replace(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

/// Goes through a text by pairs of neighbours: where `match` says so, `put` writes both and goes on after them.
template <class Match, class Put>
std::u32string by_pairs(const std::u32string& text, Match&& match, Put&& put) {
  std::u32string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && match(text[i], text[i + 1])) {
      put(result, text[i], text[i + 1]);
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

bool stands_alone(char32_t c) {
  return between(c, '{', '~') || between(c, '[', '`') || between(c, ' ', '&') || between(c, '(', '+') ||
         between(c, ':', '@') || c == '/';
}
bool is_point(char32_t c) { return c == '.' || c == ','; }

std::u32string spread(const std::u32string& text) {
  std::u32string result;
  for (char32_t c : text) {
    if (stands_alone(c))
      result += {U' ', c, U' '};
    else
      result += c;
  }
  result = by_pairs(
      result, [](char32_t a, char32_t b) { return !is_digit(a) && is_point(b); },
      [](std::u32string& out, char32_t a, char32_t b) {
        out += {a, U' ', b, U' '};
      });
  result = by_pairs(
      result, [](char32_t a, char32_t b) { return is_point(a) && !is_digit(b); },
      [](std::u32string& out, char32_t a, char32_t b) {
        out += {U' ', a, U' ', b};
      });
  return by_pairs(
      result, [](char32_t a, char32_t b) { return is_digit(a) && b == '-'; },
      [](std::u32string& out, char32_t a, char32_t b) {
        out += {a, U' ', b, U' '};
      });
}

using Counts = std::map<std::vector<std::string>, int64_t>;

Counts count(const std::vector<std::string>& words, size_t n) {
  Counts counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i), words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

void finish(Bleu& result) {
  if (result.length < result.reference_length)
    result.brevity_penalty =
        result.length > 0
            ? std::exp(1 - static_cast<double>(result.reference_length) / static_cast<double>(result.length))
            : 0;
  if (std::all_of(result.matches.begin(), result.matches.end(), [](int64_t n) { return n == 0; })) return;
  double logs = 0, share = 1;
  for (size_t n = 0; n < 4; ++n) {
    if (result.totals[n] == 0) return;  // no sentence has n + 1 words
    const double matches = result.matches[n] > 0 ? static_cast<double>(result.matches[n]) : share /= 2;
    result.precisions[n] = 100 * matches / static_cast<double>(result.totals[n]);
    logs += std::log(result.precisions[n]);
  }
  result.score = result.brevity_penalty * std::exp(logs / 4);
}

}  // namespace

std::vector<std::string> bleu_words(std::string_view line) {
  std::u32string text = lower(code_points("bleu", line));
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  replace(text, U"<skipped>", U"");
  replace(text, U"-\n", U"");
  replace(text, U"\n", U" ");
  replace(text, U"&quot;", U"\"");
  replace(text, U"&amp;", U"&");
  replace(text, U"&lt;", U"<");
  replace(text, U"&gt;", U">");
  std::vector<std::string> words;
  bool in_word = false;
  for (char32_t c : spread(U' ' + text + U' ')) {
    if (!is_blank(c)) {
      if (!in_word) words.emplace_back();
      append_utf8(words.back(), c);
    }
    in_word = !is_blank(c);
  }
  return words;
}

Bleu bleu(const std::vector<std::string>& translations, const std::vector<std::string>& references) {
  LINNET_CHECK(translations.size() == references.size() && !references.empty(), "bleu: ", translations.size(),
               " translations and ", references.size(), " references given, as many and at least 1 wanted");
  Bleu result;
  for (size_t i = 0; i < references.size(); ++i) {
    const std::vector<std::string> words = bleu_words(translations[i]), wanted = bleu_words(references[i]);
    result.length += static_cast<int64_t>(words.size());
    result.reference_length += static_cast<int64_t>(wanted.size());
    for (size_t n = 1; n <= 4; ++n) {
      const Counts there = count(wanted, n);
      for (const auto& [gram, times] : count(words, n)) {
        const auto at = there.find(gram);
        result.totals[n - 1] += times;
        if (at != there.end()) result.matches[n - 1] += std::min(times, at->second);
      }
    }
  }
  finish(result);
  return result;
}

}  // namespace linnet::data
