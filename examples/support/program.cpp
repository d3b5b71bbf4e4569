#include "support/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "linnet/core/error.h"

namespace example {
namespace {

std::string name = "program";

/// A write that the system refuses is to be an error where it is made, not a signal that ends the program.
void expect_errors() {
  std::signal(SIGPIPE, SIG_IGN);
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);
#endif
}

/// A standard stream that is closed leaves its number to the next file opened, and messages would go in there.
void fill_standard_streams() {
  int file = 0;
  while (file <= STDERR_FILENO) {
    file = ::open("/dev/null", O_RDONLY);  // as before, to write there is an error
    if (file < 0) return;
  }
  ::close(file);
}

/// False where --help was asked for, and given.
bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& help) {
    app.exit(help);
    return false;
  }
}

}  // namespace

const std::string& program_name() { return name; }

int64_t parse_integer(const std::string& flag, const std::string& text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  if (fault != std::errc() || stop != end)
    throw CLI::ValidationError(flag + " " + text + ": must be a whole number, between -2^63 and 2^63");
  return value;
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
  fill_standard_streams();
  expect_errors();
  name = app.get_name();
  try {
    const int code = parse(app, argc, argv) ? body() : 0;
    const bool written = std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout);
    LINNET_CHECK(written, "the output could not be written; is the disk full, or the reader of the pipe gone?");
    return code;
  } catch (const CLI::ParseError& error) {
    std::cerr << name << ": " << error.what() << "\n" << name << " --help lists the flags\n";
    return kBadFlags;
  } catch (const std::exception& error) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error);
    std::cout << std::flush;
    std::cerr << name << ": " << (memory ? "there is not enough memory; smaller sizes need less" : error.what())
              << std::endl;
    return kFailed;
  }
}

}  // namespace example
