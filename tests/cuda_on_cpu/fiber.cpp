#include "cuda_on_cpu/fiber.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "cuda_on_cpu/context.h"
#include "cuda_on_cpu/settings.h"

namespace cuda_on_cpu {
namespace {

constexpr size_t kStack = 128 << 10, kGuard = 4096;

struct Scheduler {
  void* context = nullptr;
  void* identity = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
};
Scheduler scheduler;
char begun, done;  // tokens of the grid now running

std::deque<Fiber>& pool() {  // taken from its end
  static auto& all = *new std::deque<Fiber>;
  return all;
}

Fiber new_fiber() {
  void* p = mmap(nullptr, kStack + kGuard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    std::perror("cuda_on_cpu: no memory for a stack");
    std::abort();
  }
  mprotect(p, kGuard, PROT_NONE);  // below the stack: an overflow stops there
  Fiber fiber;
  fiber.stack = static_cast<char*>(p) + kGuard;
#if defined(CUDA_ON_CPU_THREAD)
  fiber.identity = __tsan_create_fiber(0);
#endif
  return fiber;
}

CUDA_ON_CPU_RAW void switch_identity([[maybe_unused]] void* to) {
#if defined(CUDA_ON_CPU_THREAD)
  __tsan_switch_to_fiber(to, 1);  // 1: the switch itself orders nothing
#endif
}

}  // namespace

CUDA_ON_CPU_RAW void begin(Fiber& fiber, void (*entry)()) {
  if (pool().empty()) {
    pool().push_back(new_fiber());
    publish(&begun);  // its stack belongs to the thread that gets it
  }
  fiber = pool().back();
  pool().pop_back();
  fiber.context = make_context(fiber.stack, kStack, entry);
}

CUDA_ON_CPU_RAW void enter(Fiber& fiber) {
  ++counts().switches;
#if defined(CUDA_ON_CPU_ADDRESS)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, fiber.stack, kStack);
#endif
  switch_identity(fiber.identity);
  cuda_on_cpu_switch(&scheduler.context, fiber.context);
#if defined(CUDA_ON_CPU_ADDRESS)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

CUDA_ON_CPU_RAW void entered() {
#if defined(CUDA_ON_CPU_ADDRESS)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.stack_bottom, &scheduler.stack_bytes);
#endif
  see(&begun);
}

CUDA_ON_CPU_RAW void leave(Fiber& fiber, bool finished) {
#if defined(CUDA_ON_CPU_ADDRESS)
  __sanitizer_start_switch_fiber(finished ? nullptr : &fiber.fake_stack, scheduler.stack_bottom, scheduler.stack_bytes);
#endif
  if (finished) publish(&done);
  switch_identity(scheduler.identity);
  cuda_on_cpu_switch(&fiber.context, scheduler.context);
#if defined(CUDA_ON_CPU_ADDRESS)
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &scheduler.stack_bottom, &scheduler.stack_bytes);
#endif
}

CUDA_ON_CPU_RAW void end(Fiber& fiber, bool finished) {
#if defined(CUDA_ON_CPU_ADDRESS)
  __asan_unpoison_memory_region(fiber.stack, kStack);
#endif
  if (!finished) {  // abandoned after an error: what it did is over, too
    switch_identity(fiber.identity);
    publish(&done);
    switch_identity(scheduler.identity);
  }
  fiber.fake_stack = nullptr;
#if defined(CUDA_ON_CPU_THREAD)
  pool().push_front(fiber);  // this identity comes last
#else
  pool().push_back(fiber);  // the next thread finds its stack in the cache
#endif
  fiber = Fiber{};
}

CUDA_ON_CPU_RAW void begin_grid() {
#if defined(CUDA_ON_CPU_THREAD)
  scheduler.identity = __tsan_get_current_fiber();
#endif
  publish(&begun);
}
void end_grid() { see(&done); }
void show_grid() { publish(&begun); }
void see_grid() { see(&begun); }

CUDA_ON_CPU_RAW void prepare_identities([[maybe_unused]] unsigned threads, [[maybe_unused]] size_t blocks) {
#if defined(CUDA_ON_CPU_THREAD)
  const size_t apart = std::min<size_t>(blocks, threads <= 256 ? 4 : 2);
  while (pool().size() < apart * threads) pool().push_back(new_fiber());
#endif
}

CUDA_ON_CPU_RAW void as_scheduler(void (*f)(void*), void* argument) {
#if defined(CUDA_ON_CPU_THREAD)
  void* here = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(scheduler.identity, 1);
  f(argument);
  __tsan_release(&begun);
  __tsan_switch_to_fiber(here, 1);
#else
  f(argument);
#endif
}

}  // namespace cuda_on_cpu
