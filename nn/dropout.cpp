#include "linnet/nn/dropout.h"

#include "linnet/ops/dropout.h"

namespace linnet::nn {

Dropout::Dropout(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), p_(options.p) {
  LINNET_CHECK(p_ >= 0 && p_ <= 1, label(), ": p ", p_, " is not a probability, 0 .. 1 wanted");
}

Variable Dropout::operator()(const Variable& x) const {
  return labelled([&] { return dropout(x, p_); });
}

}  // namespace linnet::nn
