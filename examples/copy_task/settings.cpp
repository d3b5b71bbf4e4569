#include "copy_task/settings.h"

#include <limits>

#include "linnet/core/error.h"
#include "linnet/core/threads.h"

using linnet::nn::AttentionKind;

namespace copy_task {

Settings paper_settings() {
  Settings s;
  s.layers = 4, s.heads = 8, s.dim = 128, s.length = 128, s.batch = 64, s.steps = 10000;
  s.lr = 1e-3, s.lr_drop_at = 3000, s.weight_decay = 0.01;
  return s;
}

std::string Settings::title() const {
  return (is_masked() ? "Masked copy task, " : "Copy task, ") + attention + " attention";
}

linnet::models::CausalLMOptions Settings::model() const {
  linnet::models::CausalLMOptions options{
      .vocab = symbols + (is_masked() ? 3 : 2),  // the separator 0, the symbols, the padding, the mask
      .dim = dim,
      .layers = layers,
      .heads = heads,
      .hidden = 4 * dim,
      .max_time = length};
  apply(options);
  return options;
}

void Settings::check() const {
  using example::check_between, example::check_number;
  LINNET_CHECK(task == "copy" || task == "masked", "--task ", task, ": must be copy or masked");
  LINNET_CHECK(is_masked() || (kind() != AttentionKind::efficient && kind() != AttentionKind::clustered),
               "--attention ", attention, ": sees what comes later, and cannot write on; --task masked can use it");
  check_attention();
  example::check_device(device);
  check_between("--layers", layers, 1, 1000);
  check_between("--heads", heads, 1, INT64_MAX);
  check_between("--dim", dim, 1, 1 << 16);
  LINNET_CHECK(dim % heads == 0, "--dim ", dim, ": must be a multiple of --heads ", heads);
  check_between("--length", length, is_masked() ? 8 : 6, 1 << 24);
  check_between("--symbols", symbols, 1, 1 << 24);
  check_between("--batch", batch, 1, 1 << 20);
  check_between("--steps", steps, 1, int64_t{1} << 31);
  check_between("--lr-drop-at", lr_drop_at, 0, INT64_MAX);
  check_between("--seed", seed, 0, INT64_MAX);
  check_between("--threads", threads, 1, 1024);
  check_number("--lr", lr, std::numeric_limits<double>::min(), std::numeric_limits<double>::max(), "above 0");
  check_number("--clip", clip, 0, std::numeric_limits<double>::max(), "above 0, or 0 not to clip");
  check_number("--weight-decay", weight_decay, 0, std::numeric_limits<double>::max(), "0 or more");
}

void Flags::add_to(CLI::App& app) {
  example::add_settings<Settings>(app, given);
  app.add_flag("--paper", paper, "the paper's setting: length 128, 4 layers, 8 heads, batch 64, 10,000 steps");
  auto* out_option = example::add_folder(
      app, "--out", out, "folder for the run (default runs/copy_task-ATTENTION-seedSEED, then -2, ...)");
  auto* resume_option = example::add_folder(app, "--resume", resume, "go on with the run in this folder");
  auto* evaluate_option =
      example::add_folder(app, "--evaluate", evaluate, "measure the model in this folder on fresh sequences");
  auto* copy_option = app.add_option("--copy", copy, "let the model of --from copy these symbols, e.g. \"3 1 4\"");
  auto* from_option = example::add_folder(app, "--from", from, "the folder whose model --copy uses");
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
  settings.device = linnet::name(linnet::default_device());
  return example::with_flags(settings, given);
}

Settings Flags::settings_of(const Settings& run, const std::string& folder, bool steps_may_differ) const {
  if (paper) linnet::fail("--paper: the settings come from ", folder);
  if (!steps_may_differ)
    return example::settings_of_run(run, given, folder, {"threads", "device"}, "the settings come from the folder");
  return example::settings_of_run(run, given, folder, {"threads", "device", "steps"},
                                  "--resume may change only --steps, --threads, --device and --out");
}

}  // namespace copy_task
