// Workspace: memory for the values of one step of a recurrent computation, which the next step uses again.
#pragma once
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet {

/// Lends tensors: one is free again when no one holds it any more. After a first step nothing is allocated.
///
///     Tensor hidden = workspace.take({batch, width}, x.dtype(), x.device());  // contents: anything
class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) {}  // a copy begins with nothing: two computations share no memory
  Workspace(Workspace&&) = default;
  Workspace& operator=(const Workspace&) { return *this; }
  Workspace& operator=(Workspace&&) = default;

  Tensor take(const Shape& shape, Dtype dtype, Device device);

 private:
  std::vector<Tensor> tensors_;
};

}  // namespace linnet
