#include "linnet/nn/batch_norm.h"

#include <cmath>

namespace linnet::nn {
namespace {

/// dim, checked before buffers are made of it.
Shape channels(const Module& module, int64_t dim) {
  LINNET_CHECK(dim >= 1, module.label(), ": dim ", dim, ", want at least 1");
  return {dim};
}

}  // namespace

BatchNorm::BatchNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      mean_(buffer("mean", Tensor::zeros(channels(*this, options.dim)))),
      variance_(buffer("variance", Tensor::full({options.dim}, 1))),
      momentum_(options.momentum),
      eps_(options.eps) {
  LINNET_CHECK(eps_ >= 0 && std::isfinite(eps_), label(), ": eps ", eps_, " given, want finite and not negative");
  LINNET_CHECK(momentum_ >= 0 && momentum_ <= 1, label(), ": momentum ", momentum_, " given, want 0 .. 1");
  weight = parameter("weight", mean_.shape(), init::ones());
  bias = parameter("bias", mean_.shape(), init::zeros());
}

Variable BatchNorm::operator()(const Variable& x, const KeyMask* keys) const {
  return labelled([&] {
    return batch_norm(x, weight, bias, {mean_, variance_}, {.momentum = momentum_, .eps = eps_, .keys = keys});
  });
}

}  // namespace linnet::nn
