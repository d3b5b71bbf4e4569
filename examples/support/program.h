// What every example's main does around its own work: flags, errors as `program: message`, exit codes.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace example {

inline constexpr int kFailed = 1, kBadFlags = 2, kInterrupted = 130;  ///< exit codes; 0 is success

/// Parses the flags into what `app` was given, then returns body()'s exit code. Wrong flags print what is wrong and
/// return kBadFlags; an exception (linnet::Error and all others) prints `program: message` and returns kFailed. A file
/// size limit (RLIMIT_FSIZE) becomes an error on the write instead of a signal.
int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body);

}  // namespace example
