// BLEU of translations, counted as sacreBLEU counts it (Post 2018), under the signature
// nrefs:1|case:lc|eff:no|tok:13a|smooth:exp.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::data {

/// Of a whole corpus, over n-grams of n = 1 .. 4 words (Papineni et al. 2002).
struct Bleu {
  double score = 0;                          ///< 0 to 100: brevity_penalty exp(mean of ln precisions)
  std::array<double, 4> precisions{};        ///< 0 to 100: matches / totals; the k-th that is 0 becomes 2^-k / totals
  double brevity_penalty = 1;                ///< min(1, exp(1 - reference_length / length))
  int64_t length = 0, reference_length = 0;  ///< words
  std::array<int64_t, 4> matches{};          ///< n-grams found in the sentence's reference, each as often as there
  std::array<int64_t, 4> totals{};           ///< n-grams of the translations
};

/// Raw lines, one reference each. Throws where their numbers differ, there are none, or a line is not UTF-8.
Bleu bleu(const std::vector<std::string>& translations, const std::vector<std::string>& references);

/// The words that bleu() counts: the line in lower case, cut by the rules 13a of NIST's mteval-v13a: punctuation and
/// symbols stand alone, but . and , not between digits, - only after one, and ' never. Lower case are the letters of
/// ASCII, Latin-1, Latin Extended-A and Additional (German, and what is written in Latin letters in Europe), Greek
/// (a final sigma is sigma, where sacreBLEU knows the two apart) and Cyrillic; others stay as they are.
std::vector<std::string> bleu_words(std::string_view line);

}  // namespace linnet::data
