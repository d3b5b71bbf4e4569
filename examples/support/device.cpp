#include "support/device.h"

#include "linnet/core/dtype.h"
#include "linnet/core/error.h"

namespace example {

void check_device(const std::string& device) {
  LINNET_CHECK(device == "cpu" || device == "cuda", "--device ", device, ": must be cpu or cuda");
}

void use_device(const std::string& device) {
  if (device.empty()) return;
  check_device(device);
  linnet::set_default_device(device == "cuda" ? linnet::Device::cuda : linnet::Device::cpu);
}

}  // namespace example
