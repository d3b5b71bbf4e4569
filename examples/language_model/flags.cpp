#include "language_model/flags.h"

#include "linnet/core/threads.h"

namespace language_model {

void Flags::add_to(CLI::App& app) {
  using example::add_folder;
  example::add_settings<Settings>(app, given);
  auto* out_option = add_folder(app, "--out", out,
                                "folder for the run (default runs/language_model-ATTENTION-seedSEED, then -2, ...)");
  auto* resume_option = add_folder(app, "--resume", resume, "go on with the run in this folder");
  auto* evaluate_option = add_folder(app, "--evaluate", evaluate, "measure the model in this folder on held-out text");
  evaluate_option->excludes(resume_option)->excludes(out_option);
}

Settings Flags::settings() const {
  Settings settings;
  settings.threads = linnet::num_threads();
  return example::with_flags(settings, given);
}

}  // namespace language_model
