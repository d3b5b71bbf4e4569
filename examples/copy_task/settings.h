// Settings of a copy task run: what the flags say, what settings.json keeps, and which may change on resume.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "linnet/models/causal_lm.h"
#include "support/attention_settings.h"
#include "support/device.h"
#include "support/settings.h"

namespace copy_task {

struct Settings : example::AttentionSettings {
  std::string task = "copy";
  int64_t layers = 2, heads = 4, dim = 64;
  int64_t length = 32, symbols = 10;
  int64_t batch = 32, steps = 4000;
  double lr = 3e-3;
  int64_t lr_drop_at = 2600;  ///< from this step on the rate is a tenth
  double clip = 1;            ///< largest gradient norm; 0 does not clip
  double weight_decay = 0;
  int64_t seed = 1, threads = 0;
  std::string device = "cpu";

  bool is_masked() const { return task == "masked"; }
  std::string title() const;  ///< "Copy task, linear attention"
  linnet::models::CausalLMOptions model() const;
  void check() const;  ///< throws Error: which flag, what was given, what is wanted
};

template <class S, class F>
void each_setting(S& settings, F&& f) {
  example::each_attention_setting(
      settings,
      "linear (default), softmax, local, lsh or improved_clustered; --task masked also clustered or efficient", f);
  f("task", settings.task, "copy (default): write w again; masked: find the hidden symbols of both w");
  f("layers", settings.layers, "transformer blocks (default 2)");
  f("heads", settings.heads, "attention heads (default 4)");
  f("dim", settings.dim, "width of the model; the feed-forward part has four times as much (default 64)");
  f("length", settings.length, "longest sequence 0 w 0 w (default 32)");
  f("symbols", settings.symbols, "w is over 1 .. this (default 10)");
  f("batch", settings.batch, "sequences a step (default 32)");
  f("steps", settings.steps, "training steps (default 4000)");
  f("lr", settings.lr, "learning rate of RAdam (default 0.003)");
  f("lr_drop_at", settings.lr_drop_at, "the step from which the rate is a tenth (default 2600)");
  f("clip", settings.clip, "largest norm of the gradient, 0: any (default 1)");
  f("weight_decay", settings.weight_decay, "decoupled weight decay (default 0)");
  f("seed", settings.seed, "of the weights and of the data (default 1)");
  f("threads", settings.threads, "threads (default: all cores)");
  f("device", settings.device, example::kDeviceHelp);
}

/// Katharopoulos et al. 2020, section 4.1.1, with a width that two cores train in about two hours.
Settings paper_settings();

/// The flags as given.
struct Flags {
  example::Json given;  ///< the settings among them
  bool paper = false;
  std::string out, resume, evaluate, copy, from;

  void add_to(CLI::App& app);
  Settings settings() const;  ///< the defaults (or the paper's), changed by the flags
  /// What a run in `folder` was started with, changed by --steps, --threads and --device; throws Error where another
  /// flag differs.
  Settings settings_of(const Settings& run, const std::string& folder, bool steps_may_differ) const;
};

}  // namespace copy_task
