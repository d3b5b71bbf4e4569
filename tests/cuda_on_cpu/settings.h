// How the emulated device behaves, and how it says what went wrong.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <source_location>
#include <sstream>
#include <string>

#include "cuda_on_cpu/sanitizers.h"
#include "cuda_on_cpu/types.h"

namespace cuda_on_cpu {

/// The order in which the threads of a block, and the blocks of a grid, run between two barriers.
enum class Order { forward, reverse, random };

/// Read from the environment once: CUDA_ON_CPU_ORDER=forward|reverse|random, CUDA_ON_CPU_SEED, CUDA_ON_CPU_SHARED_MAX,
/// CUDA_ON_CPU_DEVICES.
struct Settings {
  Settings();
  Order order = Order::forward;
  std::mt19937 random{1};
  int devices = 1;                  ///< 0: a machine without a GPU
  size_t shared_static = 48 << 10;  ///< the most that a block may declare, or be launched with unasked
  size_t shared_max = 227 << 10;    ///< the most after cudaFuncSetAttribute: sm_90; sm_80 163 KiB, sm_75 64 KiB
};
Settings& settings();
void set_order(Order order, unsigned seed = 1);

/// What was run so far.
struct Counts {
  uint64_t launches = 0, threads = 0, switches = 0;
};
Counts& counts();

/// Prints "cuda_on_cpu: " and the message, and keeps the first error until cudaGetLastError. Returns the error.
cudaError_t report(cudaError_t error, const std::string& message);
cudaError_t first_error();
cudaError_t take_error();  ///< first_error, and forgets it

/// A message of parts.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}
std::string text_of(std::source_location place);  ///< file.cu:12
template <class Three>
std::string triple(const Three& at) {
  return text("(", at.x, ", ", at.y, ", ", at.z, ")");
}

}  // namespace cuda_on_cpu
