// RunDirectory: the folder of one training run: settings.json, metrics.csv, checkpoints, model.safetensors, curve.svg,
// summary.json.
#pragma once
#include <memory>
#include <string>

#include "support/files.h"

namespace example {

class RunDirectory {
 public:
  /// Makes the folder (and those above it), locks it and writes settings.json. Throws Error where it cannot, where
  /// another program has it locked, and where a file of a run is there already: nothing is overwritten but the settings
  /// and the tokenizer of a run that ended before its first checkpoint.
  static RunDirectory create(const std::string& path, const Json& settings);
  /// A folder that holds a run; throws Error, with what to do, where there is none.
  static RunDirectory open(const std::string& path);
  static bool holds_run(const std::string& path);
  /// `path`, or the first of path-2, path-3, ... that does not exist: a default that overwrites nothing.
  static std::string unused(const std::string& path);
  /// The same of runs/PROGRAM-ATTENTION-seedSEED: where a run lies that names no folder.
  static std::string unused(const std::string& program, const std::string& attention, int64_t seed);

  /// Keeps other programs from writing here while a copy of this object lives; throws Error where one does already.
  void lock();

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  Json settings() const { return read_json(file("settings.json")); }
  void save_settings(const Json& settings) const { write_json(file("settings.json"), settings); }
  void save_json(const std::string& name, const Json& value) const { write_json(file(name), value); }

 private:
  explicit RunDirectory(std::string path) : path_(std::move(path)) {}
  void check_unused(const Json& settings) const;

  std::string path_;
  std::shared_ptr<void> lock_;
};

}  // namespace example
