#include "linnet/core/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "linnet/core/cuda_device.h"

namespace linnet {
namespace {

constexpr int kUnset = -1;

bool available(Level level) {
#ifdef LINNET_HAS_X86_LEVELS
  __builtin_cpu_init();
  if (level == Level::avx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (level == Level::avx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
#endif
  return level <= Level::portable;
}

void check_available(Level level) {
  LINNET_CHECK(level >= Level::plain && level <= Level::avx512, "force_level: no level ", static_cast<int>(level));
  LINNET_CHECK(available(level), "force_level: ", name(level),
               " is not on this machine or not in this build; the best is ", name(best_level()));
}

/// LINNET_LEVEL from the environment, or the best.
Level first_level() {
  const char* wanted = std::getenv("LINNET_LEVEL");
  if (!wanted || !*wanted) return best_level();
  for (Level l : {Level::plain, Level::portable, Level::avx2, Level::avx512})
    if (std::string_view(wanted) == name(l)) return check_available(l), l;
  fail("LINNET_LEVEL: '", wanted, "' given, plain, portable, avx2 or avx512 wanted");
}

std::atomic<int> current = kUnset;

}  // namespace

const char* name(Level level) {
  constexpr const char* names[] = {"plain", "portable", "avx2", "avx512"};
  return names[static_cast<int>(level)];
}

Level best_level() {
  static const Level best = available(Level::avx512) ? Level::avx512
                            : available(Level::avx2) ? Level::avx2
                                                     : Level::portable;
  return best;
}

Level level() {
  int l = current.load(std::memory_order_relaxed);
  if (l == kUnset) current.store(l = static_cast<int>(first_level()), std::memory_order_relaxed);
  return static_cast<Level>(l);
}

void force_level(Level level) {
  check_available(level);
  current = static_cast<int>(level);
}

void unforce_level() { current = kUnset; }

namespace {

bool is_there(const CudaDevice* device) { return device; }
bool built_with_cuda() { return is_there(&cuda::device); }

Device first_device() {
  const char* wanted = std::getenv("LINNET_DEVICE");
  if (!wanted || !*wanted) return Device::cpu;
  for (Device d : {Device::cpu, Device::cuda})
    if (std::string_view(wanted) == name(d)) return d;
  fail("LINNET_DEVICE: '", wanted, "' given, cpu or cuda wanted");
}

std::atomic<int> current_device = kUnset;

}  // namespace

void throw_no_cuda() {
  if (!built_with_cuda())
    fail(
        "cuda: this linnet was built without CUDA; use the device cpu, or build linnet with the CUDA Toolkit "
        "installed");
  const char* fault = cuda::device.fault();
  fail("cuda: ", fault ? fault : "no kernel of this op", "; use the device cpu");
}

const CudaDevice& cuda_device() {
  if (!cuda_available()) throw_no_cuda();
  return cuda::device;
}

bool cuda_available() { return built_with_cuda() && !cuda::device.fault(); }

CudaInfo cuda_info() {
  const CudaDevice& device = cuda_device();
  return {device.name(), device.memory(false), device.memory(true)};
}

void synchronize(Device device) {
  if (device == Device::cuda) cuda_device().synchronize();
}

Device default_device() {
  int d = current_device.load(std::memory_order_relaxed);
  if (d == kUnset) current_device.store(d = static_cast<int>(first_device()), std::memory_order_relaxed);
  return static_cast<Device>(d);
}

void set_default_device(Device device) {
  if (device == Device::cuda) cuda_device();
  current_device = static_cast<int>(device);
}

}  // namespace linnet
