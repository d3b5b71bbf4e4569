#include "linnet/nn/feed_forward.h"

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

FeedForward::FeedForward(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      up(*this, "up", {.in = options.dim, .out = options.hidden}),
      down(*this, "down", {.in = options.hidden, .out = options.dim}),
      dropout(*this, "dropout", {.p = options.dropout}),
      activation_(options.activation) {}

Variable FeedForward::operator()(const Variable& x) const { return down(dropout(activate(activation_, up(x)))); }

}  // namespace linnet::nn
