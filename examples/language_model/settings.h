// Settings of a language model's run: what the flags say and settings.json keeps.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "linnet/models/causal_lm.h"
#include "support/attention_settings.h"
#include "support/device.h"
#include "support/settings.h"

namespace language_model {

struct Settings : example::AttentionSettings {
  std::string text;
  int64_t subwords = 0;
  int64_t layers = 4, heads = 4, dim = 192, hidden = 768;
  double dropout = 0.1;
  int64_t context = 256, batch = 8, steps = 3200;
  double minutes = 0;
  double lr = 2e-3;
  int64_t warmup = 100;
  double weight_decay = 0.1, clip = 1;
  int64_t evaluate_every = 250;
  int64_t seed = 1, threads = 0;
  std::string device = "cpu";

  /// `tokens`: the size of the vocabulary that the text gave.
  linnet::models::CausalLMOptions model(int64_t tokens) const;
  void check() const;  ///< throws Error: which flag, what was given, what is wanted
};

template <class S, class F>
void each_setting(S& settings, F&& f) {
  f("text", settings.text, "the file to learn from, UTF-8, plain or .gz; its last tenth is held out");
  example::each_attention_setting(settings, "linear (default), softmax or local", f);
  f("subwords", settings.subwords, "a vocabulary of so many pieces of words; 0: of characters (default 0)");
  f("layers", settings.layers, "transformer blocks (default 4)");
  f("heads", settings.heads, "attention heads (default 4)");
  f("dim", settings.dim, "width of the model (default 192)");
  f("hidden", settings.hidden, "width of the feed-forward nets (default 768)");
  f("dropout", settings.dropout, "of branches and hidden units (default 0.1)");
  f("context", settings.context, "tokens a sequence (default 256)");
  f("batch", settings.batch, "sequences a step (default 8)");
  f("steps", settings.steps, "training steps (default 3200)");
  f("minutes", settings.minutes, "train for so long at most, 0: any time (default 0)");
  f("lr", settings.lr, "the rate of AdamW at the end of the warm-up (default 0.002)");
  f("warmup", settings.warmup, "steps until then; afterwards the rate falls by a cosine (default 100)");
  f("weight_decay", settings.weight_decay, "decoupled weight decay (default 0.1)");
  f("clip", settings.clip, "largest norm of the gradient, 0: any (default 1)");
  f("evaluate_every", settings.evaluate_every, "steps between two looks at held-out text (default 250)");
  f("seed", settings.seed, "of the weights, and of where the sequences begin (default 1)");
  f("threads", settings.threads, "threads (default: all cores)");
  f("device", settings.device, example::kDeviceHelp);
}

}  // namespace language_model
