#include "cuda_on_cpu/context.h"

#include <cstdint>

#include "cuda_on_cpu/sanitizers.h"

#if defined(__x86_64__) && !defined(CUDA_ON_CPU_UCONTEXT)

// The registers that a function must preserve go onto the old stack and come from the new one.
asm(R"(
.text
.globl cuda_on_cpu_switch
.type cuda_on_cpu_switch,@function
cuda_on_cpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_cpu_switch,.-cuda_on_cpu_switch
)");

namespace cuda_on_cpu {

void* make_context(char* stack, size_t bytes, void (*entry)()) {
  void** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{63});
  *--top = nullptr;  // after `ret` the stack pointer is 8 below a 16-byte boundary, as after a call
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  return top;
}

}  // namespace cuda_on_cpu

#else
#include <ucontext.h>

extern "C" CUDA_ON_CPU_RAW void cuda_on_cpu_switch(void** save, void* to) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(to));
}

namespace cuda_on_cpu {

void* make_context(char* stack, size_t bytes, void (*entry)()) {
  auto* context = reinterpret_cast<ucontext_t*>(stack);
  getcontext(context);
  context->uc_stack.ss_sp = stack + sizeof *context;
  context->uc_stack.ss_size = bytes - sizeof *context;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

}  // namespace cuda_on_cpu
#endif
