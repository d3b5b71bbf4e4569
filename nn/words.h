// What a word stands for, where flags and files name a kind. Private to nn/.
#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "linnet/core/error.h"

namespace linnet::nn::detail {

/// The value beside `word`. Throws, with `what` and all the words, where there is none.
template <class Value, size_t n>
Value of_word(const char* what, std::string_view word, const std::pair<const char*, Value> (&words)[n]) {
  std::string all;
  for (size_t i = 0; i < n; ++i) {
    if (words[i].first == word) return words[i].second;
    all += (i == 0 ? "" : i + 1 < n ? ", " : " or ") + std::string(words[i].first);
  }
  fail(what, " ", word, ": must be ", all);
}

}  // namespace linnet::nn::detail
