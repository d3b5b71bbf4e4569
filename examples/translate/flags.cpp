#include "translate/flags.h"

#include "linnet/core/threads.h"
#include "support/program.h"

namespace translate {

void Flags::add_to(CLI::App& app) {
  example::add_settings<Settings>(app, given);
  example::add_folder(app, "--out", out, "folder for the run (default runs/translate-ATTENTION-seedSEED, then -2, ...)");
  example::add_folder(app, "--resume", resume, "go on with the run in this folder");
  example::add_integer(app, "--beam", search.beams, "beams to search with, 1: greedy (default 5)");
  app.add_option("--length-penalty", search.length_penalty, "of beam search, 0 prefers short translations (default 1)");
}

Settings Flags::settings() const {
  Settings settings;
  settings.threads = linnet::num_threads();
  return example::with_flags(settings, given);
}

}  // namespace translate
