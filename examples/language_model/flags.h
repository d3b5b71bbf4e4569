// Flags of language_model: what to do, and how to write.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "language_model/settings.h"
#include "linnet/models/sampling.h"

namespace language_model {

struct Flags {
  example::Json given;  ///< the settings among them
  std::string out, resume, evaluate, prompt = "\n", timing;
  std::vector<std::string> from;
  int64_t tokens = 500, positions = 4096;
  linnet::models::SamplingOptions sampling{.temperature = 0.8};

  void add_to(CLI::App& app);
  void check(const CLI::App& app) const;  ///< throws Error where how to write makes no sense
  Settings settings() const;              ///< the defaults, changed by the flags
};

}  // namespace language_model
