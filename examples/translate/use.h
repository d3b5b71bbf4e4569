// What one does with a trained model: measure it, translate with it, look at its attention.
#pragma once
#include <memory>
#include <string>

#include "support/run_directory.h"
#include "translate/flags.h"

namespace translate {

/// The best model of a run, with what belongs to it.
class Trained {
 public:
  /// Throws Error, naming the file, where one is missing, cut off, or does not belong to the others, and where `flags`
  /// give settings that the run has not.
  Trained(const std::string& folder, const Flags& flags);

  const Settings& settings() const { return settings_; }
  const linnet::models::EncoderDecoder& net() const { return *net_; }
  const linnet::data::SubwordTokenizer& tokenizer() const { return tokenizer_; }

 private:
  example::RunDirectory run_;
  Settings settings_;
  linnet::data::SubwordTokenizer tokenizer_;
  std::unique_ptr<linnet::models::EncoderDecoder> net_;
};

// Each returns the program's exit code.
int evaluate(const Flags& flags);        ///< BLEU of --evaluate's model on its test files
int translate_file(const Flags& flags);  ///< --translate's lines to standard output, one each
/// Lines of standard input, each translated when it comes. One that is not UTF-8, or longer than a megabyte, gives an
/// empty line and a message; then the exit code is kFailed.
int translate_input(const Flags& flags);
int show_attention(const Flags& flags);  ///< the cross attention of a sentence and its translation, as a picture

}  // namespace translate
