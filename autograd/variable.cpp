#include "linnet/autograd/variable.h"

#include <ostream>

namespace linnet {

Variable::Variable(Tensor value) : state_(std::make_shared<detail::VariableState>()) {
  state_->value = std::move(value);
}

Variable Variable::leaf(Tensor value, std::string name) {
  LINNET_CHECK(value.defined(), "leaf: the tensor is undefined; make it with a factory such as Tensor::zeros");
  Variable v(std::move(value));
  v.state_->name = std::move(name);
  v.set_requires_grad(true);
  return v;
}

detail::VariableState& Variable::state() const {
  LINNET_CHECK(state_, "variable: undefined; give it a tensor first");
  return *state_;
}

const Tensor& Variable::value() const { return state().value; }
Tensor& Variable::mutable_value() { return state().value; }
const Tensor& Variable::grad() const { return state().grad; }
Tensor& Variable::mutable_grad() { return state().grad; }
bool Variable::requires_grad() const { return state().requires_grad; }
const std::string& Variable::name() const { return state().name; }

void Variable::set_requires_grad(bool on) {
  LINNET_CHECK(state().node < 0, "set_requires_grad: this value was computed by an op; only leaves take it");
  LINNET_CHECK(!on || is_float(dtype()), "set_requires_grad: dtype ", dtype(), " has no gradient, f32 or f64 wanted");
  state_->requires_grad = on;
}

void detail::throw_undefined(const char* op, int position, size_t inputs) {
  if (inputs == 1) fail(op, ": the input is undefined; give it a tensor first");
  fail(op, ": input ", position, " of ", inputs, " is undefined; give it a tensor first");
}

std::ostream& operator<<(std::ostream& out, const Variable& x) {
  if (!x.defined()) return out << "variable (undefined)";
  out << x.value();
  if (!x.name().empty()) out << ' ' << x.name();
  return out << (x.requires_grad() ? " requires grad" : "");
}

}  // namespace linnet
