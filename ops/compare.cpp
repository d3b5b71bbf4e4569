#include "linnet/ops/compare.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

namespace {

// Beside integers the number stays what it is: f64 holds every one of them.
Tensor compare(const char* name, CompareOp op, const Variable& av, double b) {
  check_defined(name, av);
  const Tensor& a = av.value();
  const Tensor x = is_float(a.dtype()) ? a : a.to(Dtype::f64);
  return compute::compare(op, x, Tensor::scalar(b, x.dtype(), x.device()));
}

// As numbers, 0 for false: their product is 0 where one is, their sum where both are.
Tensor numbers(const char* op, const Tensor& mask) {
  check_defined(op, mask);
  LINNET_CHECK(mask.dtype() == Dtype::u8, op, ": the mask is ", mask.dtype(), ", u8 wanted");
  return mask.to(Dtype::f32);
}

}  // namespace

#define LINNET_ROW(Functor, name)                                      \
  Tensor name(const Variable& a, const Variable& b) {                  \
    check_defined(#name, a, b);                                        \
    return compute::compare(CompareOp::Functor, a.value(), b.value()); \
  }                                                                    \
  Tensor name(const Variable& a, double b) { return compare(#name, CompareOp::Functor, a, b); }
LINNET_COMPARE_OPS(LINNET_ROW)
#undef LINNET_ROW

Tensor logical_and(const Tensor& a, const Tensor& b) {
  Tensor x = numbers("logical_and", a), y = numbers("logical_and", b);
  check_same_device("logical_and", a, b);
  broadcast_shapes("logical_and", a.shape(), b.shape());
  return compare("logical_and", CompareOp::NotEqual, compute::mul(x, y), 0.0);
}

Tensor logical_or(const Tensor& a, const Tensor& b) {
  Tensor x = numbers("logical_or", a), y = numbers("logical_or", b);
  check_same_device("logical_or", a, b);
  broadcast_shapes("logical_or", a.shape(), b.shape());
  return compare("logical_or", CompareOp::NotEqual, compute::add(x, y), 0.0);
}

Tensor logical_not(const Tensor& a) { return compare("logical_not", CompareOp::Equal, numbers("logical_not", a), 0.0); }

Variable where(const Tensor& mask, const Variable& av, const Variable& bv) {
  check_defined("where", mask, av, bv);
  LINNET_CHECK(mask.dtype() == Dtype::u8, "where: the mask is ", mask.dtype(), ", u8 wanted");
  check_same_dtype("where", av.value(), bv.value());
  const Shape shape_a = av.shape(), shape_b = bv.shape();
  const bool want_a = wants_grad(av), want_b = wants_grad(bv);
  return record("where", compute::where(mask, av.value(), bv.value()), {av, bv}, keep(mask),
                [=](const Tensor& dy, const Tensor& m) -> Gradients {
                  Tensor zero = Tensor::scalar(0, dy.dtype(), dy.device()), da, db;
                  if (want_a) da = compute::sum_to(compute::where(m, dy, zero), shape_a);
                  if (want_b) db = compute::sum_to(compute::where(m, zero, dy), shape_b);
                  return {da, db};
                });
}

Variable where(const Tensor& mask, const Variable& a, double b) {
  check_defined("where", mask, a);
  return where(mask, a, Tensor::scalar(b, a.dtype(), a.device()));
}

Variable where(const Tensor& mask, double a, const Variable& b) {
  check_defined("where", mask, b);
  return where(mask, Tensor::scalar(a, b.dtype(), b.device()), b);
}

Tensor argmax(const Variable& x, int64_t axis) {
  check_defined("argmax", x);
  return compute::argmax(x.value(), axis);
}

}  // namespace linnet
