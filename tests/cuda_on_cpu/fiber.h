// A fiber: a stack and a place to go on, switched by hand. One stands for each CUDA thread that has begun and not
// ended.
#pragma once
#include <cstddef>

#include "cuda_on_cpu/sanitizers.h"

namespace cuda_on_cpu {

struct Fiber {
  char* stack = nullptr;       ///< null: not begun
  void* context = nullptr;     ///< where it goes on
  void* identity = nullptr;    ///< what the race detector knows it by
  void* fake_stack = nullptr;  ///< the address sanitizer's
};

/// Gives the fiber a stack, from the pool of those that have ended; `entry` runs at the first enter.
void begin(Fiber& fiber, void (*entry)());
/// What the race detector calls it: f(), asked for only where there is one.
template <class F>
void name_identity([[maybe_unused]] const Fiber& fiber, [[maybe_unused]] const F& f) {
#if defined(CUDA_ON_CPU_THREAD)
  __tsan_set_fiber_name(fiber.identity, f().c_str());
#endif
}
void enter(Fiber& fiber);                 ///< from the scheduler to the fiber; returns when it leaves
void entered();                           ///< the first call of `entry`
void leave(Fiber& fiber, bool finished);  ///< from the fiber to the scheduler; returns when it is entered again
void end(Fiber& fiber, bool finished);    ///< its stack goes to the pool

/// The scheduler's side of a grid: what the host did before is seen by the grid's threads, and what they did, by the
/// host afterwards.
void begin_grid();
void end_grid();
void show_grid();  ///< what the scheduler has prepared by now (shared memory) is seen by threads that begin later
void see_grid();   ///< in a fiber: sees it, too

/// Accesses of two threads with the same identity count as ordered, and an identity that comes back brings along what
/// it has seen. So there are enough for some blocks (four, two if they are large), and the longest unused goes first:
/// blocks that run one after another share none.
void prepare_identities(unsigned threads, size_t blocks);

/// Runs f as the scheduler, from within a fiber: it prepares what all threads are to see.
void as_scheduler(void (*f)(void*), void* argument);

}  // namespace cuda_on_cpu
