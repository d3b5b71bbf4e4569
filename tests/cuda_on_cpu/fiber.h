// A fiber: a stack and a place to go on, switched by hand. One stands for each CUDA thread that has begun and not
// ended.
#pragma once
#include <cstddef>
#include <string>

#include "cuda_on_cpu/sanitizers.h"

namespace cuda_on_cpu {

struct Fiber {
  char* stack = nullptr;       ///< null: not begun
  void* context = nullptr;     ///< where it goes on
  void* identity = nullptr;    ///< what the race detector knows it by
  void* fake_stack = nullptr;  ///< the address sanitizer's
};

/// Gives the fiber a stack, from the pool of those that have ended; `entry` runs at the first enter.
void begin(Fiber& fiber, void (*entry)(), const std::string& name);
void enter(Fiber& fiber);                 ///< from the scheduler to the fiber; returns when it leaves
void entered();                           ///< the first call of `entry`
void leave(Fiber& fiber, bool finished);  ///< from the fiber to the scheduler; returns when it is entered again
void end(Fiber& fiber, bool finished);    ///< its stack goes to the pool

/// The scheduler's side of a grid: what the host did before is seen by the grid's threads, and what they did, by the
/// host afterwards.
void begin_grid();
void end_grid();
void see_grid();  ///< in a fiber: sees what the scheduler has prepared by now (shared memory)

/// Accesses of two threads with the same identity count as ordered, so the identities are dealt at random out of twice
/// as many: within a block each thread has its own, and of two blocks few threads share one.
void deal_identities(unsigned threads);

/// Runs f as the scheduler, from within a fiber: it prepares what all threads are to see.
void as_scheduler(void (*f)(void*), void* argument);

}  // namespace cuda_on_cpu
