// Ctrl-C: the first SIGINT or SIGTERM asks the program to end after the step in hand, the second ends it at once.
#pragma once

namespace example {

/// Catches SIGINT and SIGTERM while it lives; afterwards they act as before.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;  ///< a signal has come: finish the step, save, leave with kInterrupted
};

}  // namespace example
