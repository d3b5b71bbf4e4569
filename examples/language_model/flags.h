// Flags of language_model: what to do, and how to write.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "language_model/settings.h"

namespace language_model {

struct Flags {
  example::Json given;  ///< the settings among them
  std::string out, resume, evaluate;

  void add_to(CLI::App& app);
  Settings settings() const;  ///< the defaults, changed by the flags
};

}  // namespace language_model
