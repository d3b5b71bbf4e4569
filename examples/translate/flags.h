// Flags of translate: what to do, and how to search for translations.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "translate/settings.h"
#include "translate/translator.h"

namespace translate {

struct Flags {
  example::Json given;  ///< the settings among them
  std::string out, resume, evaluate, translate, from, sentence, svg;
  SearchOptions search{.beams = 5};
  int64_t layer = 0, head = 0;  ///< of the attention to show, from 1; 0: the mean of all

  void add_to(CLI::App& app);
  /// Throws Error where how to search makes no sense; drawing at random is without beams.
  void settle(const CLI::App& app);
  Settings settings() const;  ///< the defaults, changed by the flags
};

}  // namespace translate
