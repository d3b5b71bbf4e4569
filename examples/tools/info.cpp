// info: the cuda device in one line, or why there is none. ./dev info shows it.
#include <cstdio>

#include "linnet/core/dispatch.h"

int main() {
  try {
    const linnet::CudaInfo cuda = linnet::cuda_info();
    const auto gib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
    std::printf("%s, %.1f GiB of memory, %.1f free\n", cuda.name.c_str(), gib(cuda.memory), gib(cuda.free));
  } catch (const linnet::Error& error) {
    std::printf("none; %s\n", error.what());
  }
  return 0;
}
