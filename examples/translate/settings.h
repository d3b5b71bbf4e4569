// Settings of a translation run: what the flags say and settings.json keeps.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "linnet/models/encoder_decoder.h"
#include "support/attention_settings.h"
#include "support/device.h"
#include "support/settings.h"

namespace translate {

struct Settings : example::AttentionSettings {
  std::string data, source = "en", target = "de", test = "test_2016_flickr";
  int64_t layers = 3, heads = 4, dim = 128, hidden = 512, vocab = 6000;
  double dropout = 0.15, smoothing = 0.1;
  int64_t epochs = 24;
  double minutes = 0;
  int64_t batch_tokens = 1600, max_length = 100;
  double lr = 3e-3;
  int64_t warmup = 800;
  double clip = 1, average = 0.998;
  int64_t seed = 1, threads = 0;
  std::string device = "cpu";

  /// `pieces`: the size of the vocabulary that the text gave. The decoder, and what it looks at the source with, have
  /// the attention of the flags where that can go step by step; else softmax.
  linnet::models::EncoderDecoderOptions model(int64_t pieces) const;
  std::string file(const std::string& part, const std::string& language) const;  ///< "DATA/val.de.gz", or without .gz
  void check() const;  ///< throws Error: which flag, what was given, what is wanted
};

template <class S, class F>
void each_setting(S& settings, F&& f) {
  f("data", settings.data, "folder with train, val and test, each .en and .de, plain or .gz, a sentence a line");
  f("source", settings.source, "the language to translate from, as the files' names end (default en)");
  f("target", settings.target, "the language to translate into (default de)");
  f("test", settings.test, "the files to measure the best model on (default test_2016_flickr)");
  example::each_attention_setting(settings,
                                  "linear (default), softmax, local, efficient, lsh, clustered or improved_clustered, "
                                  "of the encoder; of the decoder "
                                  "and between them, too, where it can go step by step, else softmax",
                                  f);
  f("layers", settings.layers, "blocks of the encoder, and of the decoder (default 3)");
  f("heads", settings.heads, "attention heads (default 4)");
  f("dim", settings.dim, "width of the model (default 128)");
  f("hidden", settings.hidden, "width of the feed-forward nets (default 512)");
  f("vocab", settings.vocab, "subwords, one vocabulary for both languages (default 6000)");
  f("dropout", settings.dropout, "of embeddings, branches and hidden units (default 0.15)");
  f("smoothing", settings.smoothing, "label smoothing of the loss (default 0.1)");
  f("epochs", settings.epochs, "passes over the training pairs (default 24)");
  f("minutes", settings.minutes, "train for so long at most, 0: any time (default 0)");
  f("batch_tokens", settings.batch_tokens, "tokens a batch, padding included (default 1600)");
  f("max_length", settings.max_length, "train on pairs of at most so many subwords a side (default 100)");
  f("lr", settings.lr, "the rate of Adam at the end of the warm-up (default 0.003)");
  f("warmup", settings.warmup, "steps until then; the rate falls with 1 / sqrt(step) afterwards (default 800)");
  f("clip", settings.clip, "largest norm of the gradient, 0: any (default 1)");
  f("average", settings.average, "decay of the average of weights that is measured and kept, 0: none (default 0.998)");
  f("seed", settings.seed, "of the weights and of the order of the data (default 1)");
  f("threads", settings.threads, "threads (default: all cores)");
  f("device", settings.device, example::kDeviceHelp);
}

}  // namespace translate
