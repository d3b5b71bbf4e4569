// OnDevice: another default device for a while.
#pragma once
#include "linnet/core/dispatch.h"

namespace linnet::test {

/// While it lives, factories and models put what they make on this device.
class OnDevice {
 public:
  explicit OnDevice(Device device) : before_(default_device()) { set_default_device(device); }
  ~OnDevice() { set_default_device(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  Device before_;
};

inline Device other_than(Device device) { return device == Device::cpu ? Device::cuda : Device::cpu; }

}  // namespace linnet::test
