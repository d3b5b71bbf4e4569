// SubwordTokenizer: texts as numbered pieces of words, learned from text by SentencePiece (Kudo and Richardson 2018).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "linnet/core/state_dict.h"
#include "linnet/data/tokenizer.h"

namespace linnet::data {

/// unigram: Kudo 2018; bpe: byte pair encoding, Sennrich et al. 2016.
enum class SubwordKind { unigram, bpe };

struct SubwordOptions {
  int64_t vocab = 8000;  ///< special tokens included; as many as the text gives where it gives fewer
  SubwordKind kind = SubwordKind::unigram;
  double coverage = 1;  ///< the share of the text's characters that the vocabulary keeps, in (0, 1]
  int64_t lines = 0;    ///< train on so many lines, drawn at random; 0: on all
  uint64_t seed = 0;    ///< of that drawing
};

/// Copies share the model, which nothing changes. Text is normalised first, as SentencePiece does by default (NFKC,
/// runs of blanks as one), so that decode(encode(text)) is the normalised text.
class SubwordTokenizer {
 public:
  /// A function of the arguments alone: training keeps to one thread. Throws where the lines hold no text or are not
  /// UTF-8, or the vocabulary is too small for their characters.
  static SubwordTokenizer train(const std::vector<std::string>& lines, const SubwordOptions& options = {});
  static SubwordTokenizer train_on_files(const std::vector<std::string>& paths, const SubwordOptions& options = {});

  int64_t vocab() const;
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  std::string decode(const std::vector<int32_t>& tokens) const;  ///< throws for a token outside the vocabulary
  const std::string& piece(int32_t token) const;                 ///< a blank is U+2581 in it

  /// A SentencePiece model, as its own programs read and write it. Loading throws where it is no such model, is
  /// damaged, or has other special tokens than linnet's (spm_train --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3).
  void save(const std::string& path) const;
  static SubwordTokenizer load(const std::string& path);
  StateDict state_dict() const;  ///< "model": u8, the same bytes
  static SubwordTokenizer from(const StateDict& state);

 private:
  struct Model;
  explicit SubwordTokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  static SubwordTokenizer parse(const std::string& where, std::string bytes);

  std::shared_ptr<const Model> model_;
};

}  // namespace linnet::data
