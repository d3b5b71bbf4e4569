#include "linnet/ops/elementwise.h"

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"

namespace linnet {

namespace {

struct Row {
  const char* name;
  Needs needs;
};

#define LINNET_ROW(Functor, name, needs) {#name, Needs::needs},
constexpr Row kUnaryRows[] = {LINNET_UNARY_OPS(LINNET_ROW)};
#undef LINNET_ROW
#define LINNET_ROW(Functor, name) #name,
constexpr const char* kBinaryNames[] = {LINNET_BINARY_OPS(LINNET_ROW)};
#undef LINNET_ROW

Variable unary(UnaryOp op, const Variable& xv, double p = 0, double q = 0) {
  const auto [name, needs] = kUnaryRows[static_cast<int>(op)];
  check_defined(name, xv);
  Tensor y = compute::unary(op, xv.value(), p, q);
  if (needs == Needs::nothing)
    return record(name, y, {xv}, keep(),
                  [op, p, q](const Tensor& dy) -> Gradients { return {compute::unary_slope(op, {}, {}, dy, p, q)}; });
  if (needs == Needs::input)
    return record(name, y, {xv}, keep(xv.value()), [op, p, q](const Tensor& dy, const Tensor& x) -> Gradients {
      return {compute::unary_slope(op, x, {}, dy, p, q)};
    });
  return record(name, y, {xv}, keep(y), [op, p, q](const Tensor& dy, const Tensor& out) -> Gradients {
    return {compute::unary_slope(op, {}, out, dy, p, q)};
  });
}

// The slopes of a sum read no input, that of a product or a quotient by a only b, and that of a product by b only a.
Variable binary(BinaryOp op, const Variable& av, const Variable& bv) {
  const char* name = kBinaryNames[static_cast<int>(op)];
  check_defined(name, av, bv);
  Tensor y = compute::binary(op, av.value(), bv.value());
  const Shape shape_a = av.shape(), shape_b = bv.shape();
  const bool want_a = wants_grad(av), want_b = wants_grad(bv);
  const bool product = op == BinaryOp::Mul, quotient = op == BinaryOp::Div;
  if (op == BinaryOp::Add || op == BinaryOp::Sub)
    return record(name, y, {av, bv}, keep(), [=](const Tensor& dy) -> Gradients {
      Tensor da = want_a ? compute::sum_to(dy, shape_a) : Tensor(), db;
      if (want_b) db = compute::sum_to(dy, shape_b);
      if (want_b && op == BinaryOp::Sub) db = compute::unary(UnaryOp::Neg, db);
      return {da, db};
    });
  return record(
      name, y, {av, bv},
      keep(want_b || !(product || quotient) ? av.value() : Tensor(), want_a || !product ? bv.value() : Tensor()),
      [=](const Tensor& dy, const Tensor& a, const Tensor& b) -> Gradients {
        Tensor da, db;
        if (want_a && (product || quotient))
          da = compute::sum_to(product ? compute::mul(dy, b) : compute::div(dy, b), shape_a);
        else if (want_a)
          da = compute::binary_slope_a(op, a, b, dy);
        if (want_b && product)
          db = compute::sum_to(compute::mul(dy, a), shape_b);
        else if (want_b)
          db = compute::binary_slope_b(op, a, b, dy);
        return {da, db};
      });
}

Variable constant_like(const char* op, const Variable& x, double c) {
  check_defined(op, x);
  return Tensor::scalar(c, x.dtype(), x.device());
}

}  // namespace

#define LINNET_ROW(Functor, name, needs) \
  Variable name(const Variable& x) { return unary(UnaryOp::Functor, x); }
LINNET_UNARY_OPS_WITHOUT_PARAMETERS(LINNET_ROW)
#undef LINNET_ROW

#define LINNET_ROW(Functor, name) \
  Variable name(const Variable& a, const Variable& b) { return binary(BinaryOp::Functor, a, b); }
LINNET_BINARY_OPS(LINNET_ROW)
#undef LINNET_ROW

Variable elu(const Variable& x, double alpha) { return unary(UnaryOp::Elu, x, alpha); }

Variable clamp(const Variable& x, double low, double high) {
  LINNET_CHECK(low <= high, "clamp: low ", low, " and high ", high, " given, low <= high wanted");
  return unary(UnaryOp::Clamp, x, low, high);
}

Variable pow(const Variable& x, double exponent) { return unary(UnaryOp::PowScalar, x, exponent); }

Variable operator+(const Variable& x, double c) { return unary(UnaryOp::Affine, x, 1, c); }
Variable operator-(const Variable& x, double c) { return unary(UnaryOp::Affine, x, 1, -c); }
Variable operator-(double c, const Variable& x) { return unary(UnaryOp::Affine, x, -1, c); }
// -0 is what a sum leaves unchanged: x * c is exact for signed zeros, too.
Variable operator*(const Variable& x, double c) { return unary(UnaryOp::Affine, x, c, -0.0); }
Variable operator/(const Variable& x, double c) { return div(x, constant_like("div", x, c)); }
Variable operator/(double c, const Variable& x) { return div(constant_like("div", x, c), x); }

}  // namespace linnet
