// launch(kernel, grid, block, bytes, stream, arguments...), which stands for kernel<<<grid, block, bytes,
// stream>>>(...), and the shared memory of a kernel.
#pragma once
#include <functional>
#include <tuple>
#include <type_traits>

#include "cuda_on_cpu/block.h"
#include "cuda_on_cpu/memory.h"
#include "cuda_on_cpu/runtime.h"

namespace cuda_on_cpu {

/// Checks a launch against the limits of a device; `run_thread` is what each thread does. `arguments_are_good` is asked
/// when the launch's turn has come.
void launch_grid(const void* kernel, dim3 grid, dim3 block, size_t bytes, cudaStream_t stream,
                 std::function<bool()> arguments_are_good, std::function<void()> run_thread);

/// False, and a report, for a pointer to something else than device memory.
bool is_device_argument(const void* p);
/// The same for what a struct or a lambda holds: false where some 8 bytes of it are the address of host memory.
bool holds_no_host_address(const void* object, size_t bytes);
/// Padding holds whatever lay there, and is cleared. GCC 12 clears the wrong bytes behind an array of structs that have
/// padding themselves: such an array stands last.
template <class T>
bool holds_no_host_address(T value) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&value);
#endif
  return holds_no_host_address(&value, sizeof value);
}
template <class T>
bool is_good_argument([[maybe_unused]] const T& value) {
  if constexpr (std::is_pointer_v<T>) return is_device_argument(value);
  if constexpr (std::is_class_v<T>) return alignof(T) < sizeof(void*) || holds_no_host_address(value);
  return true;
}

/// One array for each place of a kernel that declares one: the type of a lambda is another at every place.
template <class T, class Here>
T& shared_array(Here) {
  static_assert(std::is_trivially_copyable_v<T>, "shared memory runs no constructors");
  static const char key = 0;
  return *static_cast<T*>(shared_memory(&key, sizeof(T)));
}

}  // namespace cuda_on_cpu

#define CUDA_SHARED(T, name, ...) auto& name = cuda_on_cpu::shared_array<T __VA_ARGS__>([] {})
#define CUDA_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(cuda_on_cpu::dynamic_shared_memory())

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments));
  const std::tuple<Parameters...> all(static_cast<Parameters>(arguments)...);
  cuda_on_cpu::launch_grid(
      reinterpret_cast<const void*>(kernel), grid, block, bytes, stream,
      [all] {
        return std::apply([](const auto&... each) { return (cuda_on_cpu::is_good_argument(each) && ...); }, all);
      },
      [all, kernel] { std::apply(kernel, all); });
}
