// Flags of translate: what to do, and how to search for translations.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "translate/settings.h"
#include "translate/translator.h"

namespace translate {

struct Flags {
  example::Json given;  ///< the settings among them
  std::string out, resume;
  SearchOptions search{.beams = 5};

  void add_to(CLI::App& app);
  Settings settings() const;  ///< the defaults, changed by the flags
};

}  // namespace translate
