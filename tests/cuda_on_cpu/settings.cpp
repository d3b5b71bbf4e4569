#include "cuda_on_cpu/settings.h"

#include <cstdio>
#include <cstdlib>

namespace cuda_on_cpu {
namespace {

cudaError_t first = cudaSuccess;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

size_t number(const char* name, size_t otherwise) {
  const std::string value = from_environment(name);
  if (value.empty()) return otherwise;
  char* end = nullptr;
  const size_t read = std::strtoull(value.c_str(), &end, 10);
  if (!*end) return read;
  std::fprintf(stderr, "cuda_on_cpu: %s is %s, a number wanted\n", name, value.c_str());
  std::exit(1);
}

}  // namespace

Settings::Settings() {
  const std::string wanted = from_environment("CUDA_ON_CPU_ORDER");
  if (wanted == "reverse") order = Order::reverse;
  if (wanted == "random") order = Order::random;
  if (!wanted.empty() && wanted != "forward" && order == Order::forward) {
    std::fprintf(stderr, "cuda_on_cpu: CUDA_ON_CPU_ORDER is %s, forward, reverse or random wanted\n", wanted.c_str());
    std::exit(1);
  }
  random.seed(static_cast<unsigned>(number("CUDA_ON_CPU_SEED", 1)));
  shared_max = number("CUDA_ON_CPU_SHARED_MAX", shared_max);
  devices = number("CUDA_ON_CPU_DEVICES", 1) ? 1 : 0;
}

Settings& settings() {
  static Settings one;
  return one;
}

void set_order(Order order, unsigned seed) {
  settings().order = order;
  settings().random.seed(seed);
}

Counts& counts() {
  static Counts one;
  return one;
}

CUDA_ON_CPU_RAW cudaError_t report(cudaError_t error, const std::string& message) {
  std::fprintf(stderr, "cuda_on_cpu: %s\n", message.c_str());
  if (first == cudaSuccess) first = error;
  return error;
}

cudaError_t first_error() { return first; }

cudaError_t take_error() {
  const cudaError_t taken = first;
  first = cudaSuccess;
  return taken;
}

std::string text_of(std::source_location place) {
  const std::string file = place.file_name();
  return text(file.substr(file.rfind('/') + 1), ":", place.line());
}

}  // namespace cuda_on_cpu
