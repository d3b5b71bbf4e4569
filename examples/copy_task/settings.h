// Settings of a copy task run: what the flags say, what settings.json keeps, and which may change on resume.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "linnet/models/causal_lm.h"
#include "support/files.h"

namespace copy_task {

struct Settings {
  std::string attention = "linear", feature_map = "elu1";
  int64_t window = -1;  ///< of local attention, which has none of its own
  int64_t layers = 2, heads = 4, dim = 64;
  int64_t length = 32, symbols = 10;
  int64_t batch = 32, steps = 4000;
  double lr = 3e-3;
  int64_t lr_drop_at = 2600;  ///< from this step on the rate is a tenth
  double clip = 1;            ///< largest gradient norm; 0 does not clip
  double weight_decay = 0;
  int64_t seed = 1, threads = 0;
  std::string device = "cpu";

  linnet::models::CausalLMOptions model() const;
  void check() const;  ///< throws Error: which flag, what was given, what is wanted
};

/// Katharopoulos et al. 2020, section 4.1.1, with a width that two cores train in about two hours.
Settings paper_settings();

example::Json to_json(const Settings& settings);
/// Throws Error, naming the file and the key, where a setting is missing, of the wrong kind or out of range.
Settings settings_from_json(const example::Json& json, const std::string& file);

/// The flags as given: empty where a flag was not.
struct Flags {
  std::optional<std::string> attention, feature_map, device;
  std::optional<int64_t> window, layers, heads, dim, length, symbols, batch, steps, lr_drop_at, seed, threads;
  std::optional<double> lr, clip, weight_decay;
  bool paper = false;
  std::string out, resume, evaluate, copy, from;

  void add_to(CLI::App& app);
  Settings settings() const;  ///< the defaults (or the paper's), changed by the flags
  /// What a run in `folder` was started with, changed by --steps and --threads; throws Error where another flag
  /// differs.
  Settings settings_of(const Settings& run, const std::string& folder, bool steps_may_differ) const;
};

}  // namespace copy_task
