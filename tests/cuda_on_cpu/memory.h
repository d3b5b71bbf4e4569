// Device memory: the host cannot reach it but through the runtime, new memory holds NaN patterns, and what is written
// behind an allocation is noticed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cuda_on_cpu {

void* allocate_device(size_t bytes);  ///< null where there is none left
bool free_device(void* p);            ///< false, and a report, where p is no allocation
size_t room(const void* p);           ///< bytes from p to the end of its allocation; 0 if p is not in device memory
bool is_device_address(uintptr_t address);  ///< of device memory, whoever has it now, or what lies between
bool borders_are_whole();  ///< false, and a report, where some bytes behind an allocation were overwritten
size_t device_bytes_in_use();
constexpr size_t kDeviceBytes = size_t{64} << 30;

/// While one lives, device memory can be read and written.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

}  // namespace cuda_on_cpu
