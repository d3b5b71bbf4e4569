#include "language_model/flags.h"

#include "linnet/core/threads.h"
#include "support/program.h"

namespace language_model {

void Flags::add_to(CLI::App& app) {
  using example::add_folder, example::add_integer;
  example::add_settings<Settings>(app, given);
  auto* out_option = add_folder(app, "--out", out,
                                "folder for the run (default runs/language_model-ATTENTION-seedSEED, then -2, ...)");
  auto* resume_option = add_folder(app, "--resume", resume, "go on with the run in this folder");
  auto* evaluate_option = add_folder(app, "--evaluate", evaluate, "measure the model in this folder on held-out text");
  auto* from_option = app.add_option("--from", from, "write with the model in this folder");
  auto* prompt_option = app.add_option("--prompt", prompt, "how the text begins (default: a new line)");
  auto* tokens_option = add_integer(app, "--tokens", tokens, "to write (default 500)");
  auto* temperature_option =
      app.add_option("--temperature", sampling.temperature, "the bolder the higher; 0: the likeliest (default 0.8)");
  auto* k_option = add_integer(app, "--top-k", sampling.top_k, "draw among so many, 0: any (default 0)");
  auto* p_option =
      app.add_option("--top-p", sampling.top_p, "then among as few as have this probability together (default 1)");
  auto* timing_option =
      app.add_option("--timing", timing, "draw the time of a token over its position, for every --from, as this file");
  auto* positions_option = add_integer(app, "--positions", positions, "up to which --timing goes (default 4096)");
  timing_option->needs(from_option);
  positions_option->needs(timing_option);
  for (auto* option : {prompt_option, tokens_option, temperature_option, k_option, p_option})
    option->needs(from_option)->excludes(timing_option);
  for (auto* a : {resume_option, evaluate_option, from_option}) {
    for (auto* b : {resume_option, evaluate_option, from_option}) {
      if (a != b) a->excludes(b);
    }
  }
  out_option->excludes(evaluate_option)->excludes(from_option);
}

void Flags::check(const CLI::App& app) const {
  using example::check_between, example::check_number;
  check_between("--tokens", tokens, 0, int64_t{1} << 31);
  check_between("--positions", positions, 1, 1 << 24);
  check_number("--temperature", sampling.temperature, 0, 100, "0 to 100");
  check_between("--top-k", sampling.top_k, 0, INT64_MAX);
  check_number("--top-p", sampling.top_p, 1e-9, 1, "above 0 and at most 1");
  for (const std::string& folder : from) LINNET_CHECK(!folder.empty(), "--from: names no folder");
  LINNET_CHECK(app.count("--timing") || from.size() < 2, "--from: one folder writes, ", from.size(),
               " are for --timing");
}

Settings Flags::settings() const {
  Settings settings;
  settings.threads = linnet::num_threads();
  settings.device = linnet::name(linnet::default_device());
  return example::with_flags(settings, given);
}

}  // namespace language_model
