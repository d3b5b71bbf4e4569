#include "support/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "support/program.h"

namespace example {
namespace {

volatile sig_atomic_t signals_seen = 0;
struct sigaction before_int, before_term;

void on_signal(int) {
  if (signals_seen) _exit(kInterrupted);
  signals_seen = 1;
  const char text[] = "\nfinishing this step and saving; once more ends at once\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  signals_seen = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &before_int);
  sigaction(SIGTERM, &action, &before_term);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &before_int, nullptr);
  sigaction(SIGTERM, &before_term, nullptr);
}

bool InterruptGuard::interrupted() const { return signals_seen != 0; }

}  // namespace example
