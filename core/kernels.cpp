#include "linnet/core/kernels.h"

namespace linnet {

namespace {
constexpr FloatInstances<GeneralKernels> kernels = LINNET_FLOAT_INSTANCES(general);
}  // namespace

template <>
const GeneralKernels<float>& general_kernels(Device device) {
  return kernels.of<float>(device);
}
template <>
const GeneralKernels<double>& general_kernels(Device device) {
  return kernels.of<double>(device);
}

}  // namespace linnet
