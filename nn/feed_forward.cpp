#include "linnet/nn/feed_forward.h"

#include "linnet/core/compute.h"
#include "linnet/ops/elementwise.h"

namespace linnet::nn {

Variable activate(Activation activation, const Variable& x) {
  switch (activation) {
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::relu:
      return relu(x);
    case Activation::elu:
      return elu(x);
    case Activation::tanh:
      return tanh(x);
  }
  fail("activate: no activation ", static_cast<int>(activation));
}

void activate_into(Activation activation, const Tensor& x, Tensor& y) {
  switch (activation) {
    case Activation::gelu:
      return compute::unary_into(UnaryOp::Gelu, x, y);
    case Activation::gelu_tanh:
      return compute::unary_into(UnaryOp::GeluTanh, x, y);
    case Activation::relu:
      return compute::unary_into(UnaryOp::Relu, x, y);
    case Activation::elu:
      return compute::unary_into(UnaryOp::Elu, x, y, 1);
    case Activation::tanh:
      return compute::unary_into(UnaryOp::Tanh, x, y);
  }
  fail("activate: no activation ", static_cast<int>(activation));
}

FeedForward::FeedForward(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      up(*this, "up", {.in = options.dim, .out = options.hidden}),
      down(*this, "down", {.in = options.hidden, .out = options.dim}),
      dropout(*this, "dropout", {.p = options.dropout}),
      activation_(options.activation) {}

Variable FeedForward::operator()(const Variable& x) const { return down(dropout(activate(activation_, up(x)))); }

void FeedForward::add_to(Tensor& y, const Tensor& x, Workspace& workspace) const {
  const Shape shape = x.shape().with(-1, up.weight.size(0));
  Tensor hidden = workspace.take(shape, x.dtype(), x.device()), active = workspace.take(shape, x.dtype(), x.device());
  up.into(x, hidden);
  activate_into(activation_, hidden, active);
  down.into(active, y, Into::add);
}

}  // namespace linnet::nn
