// Switching from one stack to another: a few instructions on x86-64, <ucontext.h> elsewhere (some ten times slower).
#pragma once
#include <cstddef>

namespace cuda_on_cpu {

/// A context on this stack that runs `entry` when it is first switched to; `entry` never returns.
void* make_context(char* stack, size_t bytes, void (*entry)());

}  // namespace cuda_on_cpu

/// Leaves the present context in *save and goes on in `to`.
extern "C" void cuda_on_cpu_switch(void** save, void* to);
