#include "support/program.h"

#include <csignal>
#include <exception>
#include <iostream>

#include "linnet/core/error.h"

namespace example {

int run_program(CLI::App& app, int argc, char** argv, const std::function<int()>& body) {
#ifdef SIGXFSZ
  std::signal(SIGXFSZ, SIG_IGN);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::cerr << app.get_name() << ": " << error.what() << "\n" << app.get_name() << " --help lists the flags\n";
    return kBadFlags;
  }
  try {
    const int code = body();
    if (!std::cout.flush()) linnet::fail("the output could not be written; is the disk full?");
    return code;
  } catch (const std::exception& error) {
    std::cout << std::flush;
    std::cerr << app.get_name() << ": " << error.what() << std::endl;
    return kFailed;
  }
}

}  // namespace example
