// Running a grid: its blocks one after another, each block's threads in turns.
#pragma once
#include <cstddef>

#include "cuda_on_cpu/types.h"

namespace cuda_on_cpu {

struct Grid {
  dim3 blocks, threads;
  size_t dynamic_bytes = 0;
  size_t shared_limit = 0;
  void (*body)(void*) = nullptr;  ///< what each thread runs
  void* argument = nullptr;
};

void run(const Grid& grid);  ///< stops at the first error, which it reports

}  // namespace cuda_on_cpu
