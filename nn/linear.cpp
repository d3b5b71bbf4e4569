#include "linnet/nn/linear.h"

#include <cmath>

namespace linnet::nn {

Linear::Linear(Module& parent, std::string name, const Options& options) : Module(parent, std::move(name)) {
  const int64_t in = options.in, out = options.out;
  LINNET_CHECK(in >= 1 && out >= 1, label(), ": in ", in, " and out ", out, ", want at least 1");
  const Init standard = init::uniform(1 / std::sqrt(static_cast<double>(in)));
  if (options.tied.defined()) {
    LINNET_CHECK(options.tied.shape() == (Shape{out, in}), label(), ": tied weight ", options.tied.shape(),
                 " is not (out, in) = ", Shape{out, in});
    LINNET_CHECK(is_float(options.tied.dtype()), label(), ": tied weight is ", options.tied.dtype(),
                 ", f32 or f64 wanted");
    weight = tie("weight", options.tied);
  } else {
    weight = parameter("weight", {out, in}, options.weight_init ? options.weight_init : standard);
  }
  if (options.bias) bias = parameter("bias", {out}, standard);
}

Variable Linear::operator()(const Variable& x) const {
  return labelled([&] { return linear(x, weight, bias); });
}

void Linear::into(const Tensor& x, Tensor& y, Into how) const {
  static const Tensor none;
  linear_into(x, weight.value(), bias.defined() ? bias.value() : none, y, how);
}

}  // namespace linnet::nn
