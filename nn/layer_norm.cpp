#include "linnet/nn/layer_norm.h"

#include <cmath>

#include "linnet/ops/layer_norm.h"

namespace linnet::nn {

LayerNorm::LayerNorm(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), eps_(options.eps) {
  const int64_t dim = options.dim;
  LINNET_CHECK(dim >= 1, label(), ": dim ", dim, ", want at least 1");
  LINNET_CHECK(eps_ >= 0 && std::isfinite(eps_), label(), ": eps ", eps_, " given, want finite and not negative");
  weight = parameter("weight", {dim}, init::ones());
  bias = parameter("bias", {dim}, init::zeros());
}

Variable LayerNorm::operator()(const Variable& x) const {
  return labelled([&] { return layer_norm(x, weight, bias, eps_); });
}

void LayerNorm::into(const Tensor& x, Tensor& y) const { layer_norm_into(x, weight.value(), bias.value(), eps_, y); }

}  // namespace linnet::nn
