// Loops over the functions of core/math.h and over functors made of them, as core/math_loops.cpp is compiled for each
// level, with fused multiply-adds and (level_unfused) without.
#pragma once
#include <stdint.h>

// X(name, its value at x)
#define LINNET_MATH_LOOPS(X)             \
  X(exp, exp(x))                         \
  X(exp_nonpositive, exp_nonpositive(x)) \
  X(expm1, expm1(x))                     \
  X(log, log(x))                         \
  X(log1p, log1p(x))                     \
  X(tanh, tanh(x))                       \
  X(sigmoid, sigmoid(x))                 \
  X(erf, erf(x))                         \
  X(elu1, Elu1<float>{}.f(x))            \
  X(elu, (Elu<float>{{1, 0}}.f(x)))      \
  X(softplus, Softplus<float>{}.f(x))    \
  X(gelu, Gelu<float>{}.f(x))            \
  X(gelu_tanh, GeluTanh<float>{}.f(x))

namespace linnet {

#define LINNET_ROW(name, value) void (*name)(int64_t n, const float* x, float* y);
struct MathLoops {
  const char* level;
  LINNET_MATH_LOOPS(LINNET_ROW)
};
#undef LINNET_ROW

}  // namespace linnet
