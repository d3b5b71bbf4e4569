#include "linnet/ops/cumsum.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

Variable cumsum(const Variable& x, int64_t axis, bool reverse) {
  check_defined("cumsum", x);
  if (!is_float(x.dtype())) fail_not_float("cumsum", x.dtype());
  return record("cumsum", compute::cumsum(x.value(), axis, reverse), {x}, keep(),
                [axis, reverse](const Tensor& dy) -> Gradients { return {compute::cumsum(dy, axis, !reverse)}; });
}

}  // namespace linnet
