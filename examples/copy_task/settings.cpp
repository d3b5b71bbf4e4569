#include "copy_task/settings.h"

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "linnet/core/dispatch.h"
#include "linnet/core/error.h"
#include "linnet/core/threads.h"
#include "support/program.h"

using linnet::nn::AttentionKind;

namespace copy_task {
namespace {

// Calls f(name, field of the settings, field of the flags) for each setting: the one list that flags, files and resume
// use.
template <class S, class G, class F>
void for_each_setting(S& settings, G& flags, F&& f) {
  f("attention", settings.attention, flags.attention);
  f("window", settings.window, flags.window);
  f("feature_map", settings.feature_map, flags.feature_map);
  f("layers", settings.layers, flags.layers);
  f("heads", settings.heads, flags.heads);
  f("dim", settings.dim, flags.dim);
  f("length", settings.length, flags.length);
  f("symbols", settings.symbols, flags.symbols);
  f("batch", settings.batch, flags.batch);
  f("steps", settings.steps, flags.steps);
  f("lr", settings.lr, flags.lr);
  f("lr_drop_at", settings.lr_drop_at, flags.lr_drop_at);
  f("clip", settings.clip, flags.clip);
  f("weight_decay", settings.weight_decay, flags.weight_decay);
  f("seed", settings.seed, flags.seed);
  f("threads", settings.threads, flags.threads);
  f("device", settings.device, flags.device);
}

std::string flag_name(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c;
  return "--" + name;
}

// As a person writes it: 0.003, where linnet::fail would write all 17 digits.
std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// Which JSON a setting takes. nlohmann's own conversions would cut 8.7 to 8 and take true for 1.
bool fits(const example::Json& json, const std::string&) { return json.is_string(); }
bool fits(const example::Json& json, double) { return json.is_number(); }
bool fits(const example::Json& json, int64_t) {
  return json.is_number_integer() && (!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX);
}

const char* wanted(const std::string&) { return "text"; }
const char* wanted(double) { return "a number"; }
const char* wanted(int64_t) { return "a whole number below 2^63"; }

void apply(const Flags& flags, Settings& settings) {
  for_each_setting(settings, flags, [](const char*, auto& value, const auto& flag) {
    if (flag) value = *flag;
  });
}

}  // namespace

Settings paper_settings() {
  Settings s;
  s.layers = 4, s.heads = 8, s.dim = 128, s.length = 128, s.batch = 64, s.steps = 10000;
  s.lr = 1e-3, s.lr_drop_at = 3000, s.weight_decay = 0.01;
  return s;
}

linnet::models::CausalLMOptions Settings::model() const {
  return {.vocab = symbols + 2,  // the separator 0, the symbols, the padding
          .dim = dim,
          .layers = layers,
          .heads = heads,
          .hidden = 4 * dim,
          .max_time = length,
          .kind = linnet::nn::attention_kind(attention),
          .window = window,
          .feature_map = linnet::nn::feature_map(feature_map)};
}

void Settings::check() const {
  auto at_least = [](const char* flag, int64_t value, int64_t least) {
    LINNET_CHECK(value >= least, flag, " ", value, ": must be at least ", least);
  };
  const auto kind = linnet::nn::attention_kind(attention, "--attention");
  const bool is_linear = kind == AttentionKind::linear, is_local = kind == AttentionKind::local;
  LINNET_CHECK(kind != AttentionKind::efficient, "--attention efficient: sees what comes later, and cannot write on");
  LINNET_CHECK(!is_local || window >= 0, "--attention local: wants --window, how many steps back a step looks");
  LINNET_CHECK(is_local || window == -1, "--window ", window, ": only for --attention local");
  (void)linnet::nn::feature_map(feature_map, "--feature-map");
  LINNET_CHECK(is_linear || feature_map == "elu1", "--feature-map ", feature_map, ": only for --attention linear");
  LINNET_CHECK(device == "cpu" || device == "cuda", "--device ", device, ": must be cpu or cuda");
  at_least("--layers", layers, 1);
  at_least("--heads", heads, 1);
  at_least("--dim", dim, 1);
  LINNET_CHECK(dim % heads == 0, "--dim ", dim, ": must be a multiple of --heads ", heads);
  at_least("--length", length, 6);
  at_least("--symbols", symbols, 1);
  at_least("--batch", batch, 1);
  at_least("--steps", steps, 1);
  at_least("--lr-drop-at", lr_drop_at, 0);
  at_least("--seed", seed, 0);
  at_least("--threads", threads, 1);
  const struct {
    const char* flag;
    int64_t value, most;
  } limits[] = {{"--layers", layers, 1000},      {"--dim", dim, 1 << 16},     {"--length", length, 1 << 24},
                {"--symbols", symbols, 1 << 24}, {"--batch", batch, 1 << 20}, {"--steps", steps, int64_t{1} << 31},
                {"--threads", threads, 1024}};
  for (const auto& limit : limits) {
    LINNET_CHECK(limit.value <= limit.most, limit.flag, " ", limit.value, ": must be at most ", limit.most);
  }
  LINNET_CHECK(std::isfinite(lr) && lr > 0, "--lr ", shown(lr), ": must be above 0");
  LINNET_CHECK(std::isfinite(clip) && clip >= 0, "--clip ", shown(clip), ": must be above 0, or 0 not to clip");
  LINNET_CHECK(std::isfinite(weight_decay) && weight_decay >= 0, "--weight-decay ", shown(weight_decay),
               ": must be 0 or more");
  if (device == "cuda" && !linnet::cuda_available()) linnet::throw_no_cuda();
}

example::Json to_json(const Settings& settings) {
  example::Json json;
  const Flags none;
  for_each_setting(settings, none, [&](const char* name, const auto& value, const auto&) { json[name] = value; });
  return json;
}

Settings settings_from_json(const example::Json& json, const std::string& file) {
  Settings settings;
  const Flags none;
  for_each_setting(settings, none, [&](const char* name, auto& value, const auto&) {
    const bool newer = name == std::string("window") || name == std::string("feature_map");
    if (newer && !json.contains(name)) return;  // a run that was started before there was a choice
    LINNET_CHECK(json.contains(name), file, ": \"", name, "\" is missing; is it from a copy_task run?");
    const example::Json& given = json.at(name);
    LINNET_CHECK(fits(given, value), file, ": \"", name, "\" is ", given.dump(), ", wanted: ", wanted(value));
    given.get_to(value);
  });
  example::naming(file, [&] { settings.check(); });
  return settings;
}

void Flags::add_to(CLI::App& app) {
  using example::add_integer;
  app.add_option("--attention", attention, "linear (default), softmax or local");
  add_integer(app, "--window", window, "how many steps back local attention looks");
  app.add_option("--feature-map", feature_map,
                 "of linear attention: elu1 (default), relu, squared_relu, polynomial, fourier or favor");
  add_integer(app, "--layers", layers, "transformer blocks (default 2)");
  add_integer(app, "--heads", heads, "attention heads (default 4)");
  add_integer(app, "--dim", dim, "width of the model; the feed-forward part has four times as much (default 64)");
  add_integer(app, "--length", length, "longest sequence 0 w 0 w (default 32)");
  add_integer(app, "--symbols", symbols, "w is over 1 .. this (default 10)");
  add_integer(app, "--batch", batch, "sequences a step (default 32)");
  add_integer(app, "--steps", steps, "training steps (default 4000)");
  app.add_option("--lr", lr, "learning rate of RAdam (default 0.003)");
  add_integer(app, "--lr-drop-at", lr_drop_at, "the step from which the rate is a tenth (default 2600)");
  app.add_option("--clip", clip, "largest norm of the gradient, 0: any (default 1)");
  app.add_option("--weight-decay", weight_decay, "decoupled weight decay (default 0)");
  add_integer(app, "--seed", seed, "of the weights and of the data (default 1)");
  add_integer(app, "--threads", threads, "threads (default: all cores)");
  app.add_option("--device", device, "cpu (default) or cuda");
  app.add_flag("--paper", paper, "the paper's setting: length 128, 4 layers, 8 heads, batch 64, 10,000 steps");
  auto* out_option =
      app.add_option("--out", out, "folder for the run (default runs/copy_task-ATTENTION-seedSEED, then -2, ...)");
  auto* resume_option = app.add_option("--resume", resume, "go on with the run in this folder");
  auto* evaluate_option = app.add_option("--evaluate", evaluate, "measure the model in this folder on fresh sequences");
  auto* copy_option = app.add_option("--copy", copy, "let the model of --from copy these symbols, e.g. \"3 1 4\"");
  auto* from_option = app.add_option("--from", from, "the folder whose model --copy uses");
  for (auto* option : {out_option, resume_option, evaluate_option, from_option}) {
    option->check([](const std::string& folder) { return folder.empty() ? "names no folder" : ""; });
  }
  copy_option->needs(from_option);
  from_option->needs(copy_option);
  for (auto* a : {resume_option, evaluate_option, copy_option}) {
    for (auto* b : {resume_option, evaluate_option, copy_option}) {
      if (a != b) a->excludes(b);
    }
  }
  out_option->excludes(evaluate_option)->excludes(copy_option);
}

Settings Flags::settings() const {
  Settings settings = paper ? paper_settings() : Settings();
  settings.threads = linnet::num_threads();
  apply(*this, settings);
  settings.check();
  return settings;
}

Settings Flags::settings_of(const Settings& run, const std::string& folder, bool steps_may_differ) const {
  if (paper) linnet::fail("--paper: the settings come from ", folder);
  Settings wanted = run;
  apply(*this, wanted);
  const example::Json before = to_json(run), after = to_json(wanted);
  const auto text = [](const example::Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [name, value] : after.items()) {
    if (value == before.at(name) || name == "threads" || (name == "steps" && steps_may_differ)) continue;
    linnet::fail(flag_name(name), " ", text(value), ": the run in ", folder, " has ", text(before.at(name)),
                 steps_may_differ ? "; --resume may change only --steps, --threads and --out"
                                  : "; the settings come from the folder");
  }
  wanted.check();
  return wanted;
}

}  // namespace copy_task
