// The elementwise functors: one row each in the lists, which every table of kernels and every op is made from, and one
// functor each, a value f and its slope df. The functors are seen only by the files of a level, in its own namespace.
#pragma once
#ifdef LINNET_LEVEL
#include "linnet/core/math.h"
#endif

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

/// What the slope of a unary op reads beside dy.
enum class Needs { nothing, input, output };

inline constexpr int kUnaryCount = static_cast<int>(UnaryOp::count);
inline constexpr int kBinaryCount = static_cast<int>(BinaryOp::count);
inline constexpr int kCompareCount = static_cast<int>(CompareOp::count);

}  // namespace linnet

#ifdef LINNET_LEVEL
namespace linnet::LINNET_LEVEL {

/// df(x, y) gets the input x and the output y; only what the row says is read.
template <class T>
struct Unary {
  T p, q;
};

template <class T>
struct Neg : Unary<T> {
  LINNET_FN T f(T x) const { return -x; }
  LINNET_FN T df(T, T) const { return -1; }
};
template <class T>
struct Abs : Unary<T> {
  LINNET_FN T f(T x) const { return abs(x); }
  LINNET_FN T df(T x, T) const { return x > 0 ? T(1) : x < 0 ? T(-1) : T(0); }
};
template <class T>
struct Exp : Unary<T> {
  LINNET_FN T f(T x) const { return exp(x); }
  LINNET_FN T df(T, T y) const { return y; }
};
template <class T>
struct Log : Unary<T> {
  LINNET_FN T f(T x) const { return log(x); }
  LINNET_FN T df(T x, T) const { return 1 / x; }
};
template <class T>
struct Sqrt : Unary<T> {
  LINNET_FN T f(T x) const { return sqrt(x); }
  LINNET_FN T df(T, T y) const { return T(0.5) / y; }
};
template <class T>
struct Square : Unary<T> {
  LINNET_FN T f(T x) const { return x * x; }
  LINNET_FN T df(T x, T) const { return 2 * x; }
};
template <class T>
struct Tanh : Unary<T> {
  LINNET_FN T f(T x) const { return tanh(x); }
  LINNET_FN T df(T, T y) const { return 1 - y * y; }
};
template <class T>
struct Sigmoid : Unary<T> {
  LINNET_FN T f(T x) const { return sigmoid(x); }
  LINNET_FN T df(T, T y) const { return y * (1 - y); }
};
template <class T>
struct Relu : Unary<T> {
  LINNET_FN T f(T x) const { return x < 0 ? T(0) : x; }  // NaN stays NaN
  LINNET_FN T df(T, T y) const { return y > 0 ? T(1) : T(0); }
};
/// x Phi(x), Phi the normal distribution (Hendrycks and Gimpel 2016).
template <class T>
struct Gelu : Unary<T> {
  LINNET_FN T f(T x) const { return T(0.5) * x * (1 + erf(x * T(0.70710678118654752))); }
  LINNET_FN T df(T x, T) const {
    T phi = T(0.3989422804014327) * exp_nonpositive(T(-0.5) * x * x);
    return T(0.5) * (1 + erf(x * T(0.70710678118654752))) + x * phi;
  }
};
/// 0.5 x (1 + tanh z) with z = sqrt(2/pi) (x + 0.044715 x^3), as x sigmoid(2z), which keeps its digits for x < 0.
template <class T>
struct GeluTanh : Unary<T> {
  static constexpr T kScale = T(1.5957691216057308), kCube = T(0.0713548162726009);  // 2 sqrt(2/pi) and 0.044715 of it
  LINNET_FN T f(T x) const { return x * sigmoid(x * (kScale + kCube * (x * x))); }
  LINNET_FN T df(T x, T) const {
    T s = sigmoid(x * (kScale + kCube * (x * x)));
    T rise = s * (1 - s), steep = x * (kScale + 3 * kCube * (x * x));
    return s + (rise == 0 ? T(0) : rise * steep);  // far out, steep overflows
  }
};
/// elu(x) + 1, the feature map of linear attention: by branches, so that small values survive.
template <class T>
struct Elu1 : Unary<T> {
  LINNET_FN T f(T x) const {
    T e = exp_nonpositive(x);
    return x >= 0 ? x + 1 : e;
  }
  LINNET_FN T df(T, T y) const { return y < 1 ? y : T(1); }
};
template <class T>
struct Elu : Unary<T> {
  LINNET_FN T f(T x) const {
    T e = this->p * expm1(x > 0 ? T(0) : x);
    return x < 0 ? e : x;  // -0 and NaN stay
  }
  LINNET_FN T df(T x, T) const {
    T e = this->p * exp_nonpositive(x);
    return x > 0 ? T(1) : e;
  }
};
/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|).
template <class T>
struct Softplus : Unary<T> {
  LINNET_FN T f(T x) const { return (x < 0 ? T(0) : x) + log1p(exp_nonpositive(-abs(x))); }
  LINNET_FN T df(T x, T) const { return sigmoid(x); }
};
template <class T>
struct Clamp : Unary<T> {
  LINNET_FN T f(T x) const {
    T y = x < this->p ? this->p : x;
    return y > this->q ? this->q : y;
  }
  LINNET_FN T df(T x, T) const { return x >= this->p && x <= this->q ? T(1) : T(0); }
};
template <class T>
struct PowScalar : Unary<T> {
  LINNET_FN T f(T x) const { return pow(x, this->p); }
  LINNET_FN T df(T x, T) const { return this->p == 0 ? T(0) : this->p * pow(x, this->p - 1); }
};
template <class T>
struct Affine : Unary<T> {
  LINNET_FN T f(T x) const { return this->p * x + this->q; }
  LINNET_FN T df(T, T) const { return this->p; }
};

/// da and db are the slopes by the first and the second input.
template <class T>
struct Add {
  LINNET_FN static T f(T a, T b) { return a + b; }
  LINNET_FN static T da(T, T) { return 1; }
  LINNET_FN static T db(T, T) { return 1; }
};
template <class T>
struct Sub {
  LINNET_FN static T f(T a, T b) { return a - b; }
  LINNET_FN static T da(T, T) { return 1; }
  LINNET_FN static T db(T, T) { return -1; }
};
template <class T>
struct Mul {
  LINNET_FN static T f(T a, T b) { return a * b; }
  LINNET_FN static T da(T, T b) { return b; }
  LINNET_FN static T db(T a, T) { return a; }
};
template <class T>
struct Div {
  LINNET_FN static T f(T a, T b) { return a / b; }
  LINNET_FN static T da(T, T b) { return 1 / b; }
  LINNET_FN static T db(T a, T b) { return -(a / b) / b; }  // b * b may overflow
};
/// The slope by the exponent is 0 at a = 0 (its limit for b > 0) and NaN below, as the logarithm.
template <class T>
struct Pow {
  LINNET_FN static T f(T a, T b) { return pow(a, b); }
  LINNET_FN static T da(T a, T b) { return b == 0 ? T(0) : b * pow(a, b - 1); }
  LINNET_FN static T db(T a, T b) { return a == 0 && b >= 0 ? T(0) : pow(a, b) * log(a); }
};
/// Equal inputs share the gradient.
template <class T>
struct Maximum {
  LINNET_FN static T f(T a, T b) { return a > b || a != a ? a : b; }
  LINNET_FN static T da(T a, T b) { return a > b ? T(1) : a == b ? T(0.5) : T(0); }
  LINNET_FN static T db(T a, T b) { return b > a ? T(1) : a == b ? T(0.5) : T(0); }
};
template <class T>
struct Minimum {
  LINNET_FN static T f(T a, T b) { return a < b || a != a ? a : b; }
  LINNET_FN static T da(T a, T b) { return a < b ? T(1) : a == b ? T(0.5) : T(0); }
  LINNET_FN static T db(T a, T b) { return b < a ? T(1) : a == b ? T(0.5) : T(0); }
};

template <class T>
struct Equal {
  LINNET_FN static bool f(T a, T b) { return a == b; }
};
template <class T>
struct NotEqual {
  LINNET_FN static bool f(T a, T b) { return a != b; }
};
template <class T>
struct Less {
  LINNET_FN static bool f(T a, T b) { return a < b; }
};
template <class T>
struct LessEqual {
  LINNET_FN static bool f(T a, T b) { return a <= b; }
};
template <class T>
struct Greater {
  LINNET_FN static bool f(T a, T b) { return a > b; }
};
template <class T>
struct GreaterEqual {
  LINNET_FN static bool f(T a, T b) { return a >= b; }
};

}  // namespace linnet::LINNET_LEVEL
#endif  // LINNET_LEVEL
