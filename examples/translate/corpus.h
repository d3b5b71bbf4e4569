// Corpus: pairs of sentences as numbers, and the batches that a step takes.
#pragma once
#include <string>
#include <vector>

#include "linnet/data/batching.h"
#include "linnet/data/subwords.h"
#include "linnet/ops/masks.h"

namespace translate {

using Tokens = std::vector<int32_t>;

/// The lines of two files, each the translation of the other.
struct Lines {
  std::vector<std::string> source, target;
};
/// Throws Error where a file cannot be read, is not UTF-8, or their numbers of lines differ.
Lines read_pairs(const std::string& source, const std::string& target);

struct Pair {
  Tokens source;  ///< ends with kEnd
  Tokens target;  ///< begins with kBegin and ends with kEnd
};

/// What was left out of a corpus, and why.
struct Left {
  int64_t empty = 0, too_long = 0;
};
/// Pairs of at most max_length tokens a side (0: any), kBegin and kEnd counted, whose sides both hold text.
std::vector<Pair> encode_pairs(const Lines& lines, const linnet::data::SubwordTokenizer& tokenizer, int64_t max_length,
                               Left& left);
/// A plan by the longer side.
linnet::data::Plan plan_of(const std::vector<Pair>& pairs, int64_t max_tokens, bool shuffle, uint64_t seed);

struct Batch {
  linnet::Tensor source;                ///< i32 (batch, source time)
  std::vector<int32_t> source_lengths;  ///< what is beyond is padding
  linnet::Tensor inputs, targets;       ///< i32 (batch, time): the target without its end, and without its begin
  int64_t tokens = 0;                   ///< targets that are not ignored

  linnet::KeyMask keys() const { return linnet::KeyMask::lengths(source_lengths); }
};
Batch make_batch(const std::vector<Pair>& pairs);

}  // namespace translate
