// The list of elementwise ops: one row an op; its functor (value f, slope df) stands in core/functors.h.
#pragma once

// X(Functor, name, what the slope needs: nothing, input or output)
#define LINNET_UNARY_OPS_WITHOUT_PARAMETERS(X) \
  X(Neg, neg, nothing)                         \
  X(Abs, abs, input)                           \
  X(Exp, exp, output)                          \
  X(Log, log, input)                           \
  X(Sqrt, sqrt, output)                        \
  X(Square, square, input)                     \
  X(Tanh, tanh, output)                        \
  X(Sigmoid, sigmoid, output)                  \
  X(Relu, relu, output)                        \
  X(Gelu, gelu, input)                         \
  X(GeluTanh, gelu_tanh, input)                \
  X(Elu1, elu1, output)                        \
  X(Softplus, softplus, input)

#define LINNET_UNARY_OPS_WITH_PARAMETERS(X)             \
  X(Elu, elu, input)              /* p: alpha */        \
  X(Clamp, clamp, input)          /* p: low, q: high */ \
  X(PowScalar, pow_scalar, input) /* p: exponent */     \
  X(Affine, affine, nothing)      /* p x + q */

#define LINNET_UNARY_OPS(X) LINNET_UNARY_OPS_WITHOUT_PARAMETERS(X) LINNET_UNARY_OPS_WITH_PARAMETERS(X)

// X(Functor, name)
#define LINNET_BINARY_OPS(X) \
  X(Add, add)                \
  X(Sub, sub)                \
  X(Mul, mul)                \
  X(Div, div)                \
  X(Pow, pow)                \
  X(Maximum, maximum)        \
  X(Minimum, minimum)

#define LINNET_COMPARE_OPS(X) \
  X(Equal, equal)             \
  X(NotEqual, not_equal)      \
  X(Less, less)               \
  X(LessEqual, less_equal)    \
  X(Greater, greater)         \
  X(GreaterEqual, greater_equal)

namespace linnet {

#define LINNET_ROW(Functor, ...) Functor,
enum class UnaryOp { LINNET_UNARY_OPS(LINNET_ROW) count };
enum class BinaryOp { LINNET_BINARY_OPS(LINNET_ROW) count };
enum class CompareOp { LINNET_COMPARE_OPS(LINNET_ROW) count };
#undef LINNET_ROW

inline constexpr int kUnaryCount = static_cast<int>(UnaryOp::count);
inline constexpr int kBinaryCount = static_cast<int>(BinaryOp::count);
inline constexpr int kCompareCount = static_cast<int>(CompareOp::count);

}  // namespace linnet
