// Variable: a handle to a value that gradients may flow to. Copies share the value and the gradient.
#pragma once
#include <memory>
#include <string>

#include "linnet/core/tensor.h"

namespace linnet {

namespace detail {
struct VariableState {
  Tensor value;
  Tensor grad;
  bool requires_grad = false;
  std::string name;   // dotted, where it is a parameter
  uint64_t tape = 0;  // the tape that recorded it (0: none), its node there and which of the node's outputs it is
  int64_t node = -1;
  int output = 0;
};

[[noreturn]] void throw_undefined(const char* op, int position, size_t inputs);
}  // namespace detail

class Variable {
 public:
  Variable() = default;    ///< undefined
  Variable(Tensor value);  ///< a constant: implicit, so that users never wrap inputs; undefined where value is
  /// A leaf that gradients are kept for.
  static Variable leaf(Tensor value, std::string name = {});

  bool defined() const { return state_ && state_->value.defined(); }
  const Tensor& value() const;  ///< throws where undefined
  Tensor& mutable_value();      ///< for optimizers and loading
  const Tensor& grad() const;   ///< undefined where none came
  Tensor& mutable_grad();
  void clear_grad() { mutable_grad() = Tensor(); }

  const Shape& shape() const { return value().shape(); }
  int rank() const { return value().rank(); }
  int64_t size(int axis) const { return value().size(axis); }
  int64_t numel() const { return value().numel(); }
  Dtype dtype() const { return value().dtype(); }
  Device device() const { return value().device(); }
  double item() const { return value().item(); }

  bool requires_grad() const;
  void set_requires_grad(bool on);  ///< leaves only: throws for a value that an op recorded
  const std::string& name() const;
  Variable detach() const { return Variable(value()); }  ///< a constant that shares the memory

  bool same_as(const Variable& other) const { return state_ == other.state_; }
  long owners() const { return state_.use_count(); }  ///< how many handles are the same as this
  detail::VariableState& state() const;

 private:
  std::shared_ptr<detail::VariableState> state_;
};

std::ostream& operator<<(std::ostream& out, const Variable& x);

/// The first check of an op: throws, naming the op and the position, where an input (Variable or Tensor) is undefined.
template <class... Inputs>
void check_defined(const char* op, const Inputs&... inputs) {
  int position = 0;
  ((++position, inputs.defined() || (detail::throw_undefined(op, position, sizeof...(inputs)), false)), ...);
}

}  // namespace linnet
