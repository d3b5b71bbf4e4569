// Settings: the struct of a training program's settings as flags, as settings.json, and where a run goes on.
//
// The program names the fields once, beside its struct, which has a check() that throws:
//     template <class S, class F>
//     void each_setting(S& settings, F&& f) {  // S may be const
//       f("layers", settings.layers, "transformer blocks (default 2)");
//     }
// Fields are int64_t, double or std::string; the flag of max_rate is --max-rate.
#pragma once
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "support/files.h"

namespace example {

std::string flag_name(std::string setting);
/// As a person writes it: 0.003, where linnet::fail would write all 17 digits.
std::string shown(double value);
/// Throws Error: `--layers 0: must be at least 1`.
void check_between(const char* flag, int64_t value, int64_t least, int64_t most);
/// value in low .. high, finite; `wanted` ends the message: `--lr 0: must be above 0`.
void check_number(const char* flag, double value, double low, double high, const char* wanted);

/// A flag whose text goes into `given` under the setting's name; the last argument tells the kind.
void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, int64_t);
void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, double);
void add_setting(CLI::App& app, const std::string& name, const std::string& help, Json& given, const std::string&);
/// Throws Error, naming the file and the key, where it is missing or of the wrong kind.
void read_setting(const Json& json, const std::string& file, const std::string& name, int64_t& value);
void read_setting(const Json& json, const std::string& file, const std::string& name, double& value);
void read_setting(const Json& json, const std::string& file, const std::string& name, std::string& value);
/// Throws Error where settings differ that are not in may_differ.
void check_differences(const Json& before, const Json& after, const std::string& folder,
                       std::initializer_list<std::string_view> may_differ, const std::string& advice);
/// A flag that names a folder: empty text is refused.
CLI::Option* add_folder(CLI::App& app, const std::string& flag, std::string& folder, const std::string& help);

template <class S>
Json settings_to_json(const S& settings) {
  Json json;
  each_setting(settings, [&](const char* name, const auto& value, const char*) { json[name] = value; });
  return json;
}

/// Throws Error, naming the file and the key, where a setting is missing, of the wrong kind or out of range.
template <class S>
S settings_from_json(const Json& json, const std::string& file) {
  S settings;
  each_setting(settings, [&](const char* name, auto& value, const char*) { read_setting(json, file, name, value); });
  naming(file, [&] { settings.check(); });
  return settings;
}

/// A flag for every setting; those that were given are in `given` after parsing.
template <class S>
void add_settings(CLI::App& app, Json& given) {
  given = Json::object();
  const S defaults;
  each_setting(defaults, [&](const char* name, const auto& value, const char* help) {
    add_setting(app, name, help, given, value);
  });
}

/// The settings with what was given instead, checked.
template <class S>
S with_flags(S settings, const Json& given) {
  each_setting(settings, [&](const char* name, auto& value, const char*) {
    if (given.contains(name)) given.at(name).get_to(value);
  });
  settings.check();
  return settings;
}

/// What the run in `folder` was started with, changed by flags; throws Error where one differs that may not.
/// `advice` ends the message.
template <class S>
S settings_of_run(const S& run, const Json& given, const std::string& folder,
                  std::initializer_list<std::string_view> may_differ, const std::string& advice) {
  S wanted = run;
  each_setting(wanted, [&](const char* name, auto& value, const char*) {
    if (given.contains(name)) given.at(name).get_to(value);
  });
  check_differences(settings_to_json(run), settings_to_json(wanted), folder, may_differ, advice);
  wanted.check();
  return wanted;
}

}  // namespace example
