// What every example's main does around its own work: flags, errors as `program: message`, exit codes.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>

namespace example {

inline constexpr int kFailed = 1, kBadFlags = 2, kInterrupted = 130;  ///< exit codes; 0 is success

/// Parses the flags into what `app` was given, then returns body()'s exit code. Wrong flags print what is wrong and
/// return kBadFlags; an exception (linnet::Error and all others) prints `program: message` and returns kFailed, and so
/// does output that could not be written. A file size limit (RLIMIT_FSIZE) or a closed pipe becomes an error on the
/// write instead of a signal.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

/// What run_program runs, by the name of its app, for messages.
const std::string& program_name();

/// Decimal digits as a number; throws CLI::ValidationError, naming the flag.
int64_t parse_integer(const std::string& flag, const std::string& text);

/// A flag that takes a whole number, into an int64_t or an optional one. CLI11's own conversion reads 010 as 8 and what
/// is too large as the largest number there is.
template <class Target>
CLI::Option* add_integer(CLI::App& app, const std::string& flag, Target& target, const std::string& help) {
  return app
      .add_option_function<std::string>(
          flag, [flag, &target](const std::string& text) { target = parse_integer(flag, text); }, help)
      ->type_name("INT");
}

}  // namespace example
