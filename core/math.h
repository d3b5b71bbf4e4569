// exp, log, tanh, sigmoid, erf and their kin, written so that a plain loop over them is vectorised: no branch, no
// table, no call. Included once per level; everything lies in the level's own namespace. The level plain, and every
// f64, takes libm; the level cuda takes CUDA's functions.
//
// Worst error over all 2^32 f32, in units in the last place (of the smallest denormal number where the result is one),
// with fused multiply-adds / without; every level that has them gives the same (tests/core/test_math.cpp):
//   exp, exp_nonpositive 0.93 / 1.19   log   0.94 / 1.07   tanh 1.59 / 1.53   sigmoid  1.82 / 1.98
//   expm1                1.53 / 1.66   log1p 1.48 / 1.58   erf  1.42 / 1.70   softplus 1.88 / 1.92
//   elu + 1              0.92 / 1.19   elu   0.95 / 1.03
//   gelu      1.71 for x > 0; for x < 0, where 1 + erf loses digits, 0.8 units in the last place of x
//   gelu_tanh 2.70 for x > 0; for x < 0 up to 214 as the result falls to 0: the exponent of e is a rounded number
// Signed zeros, infinities and NaN are libm's. The polynomials are own minimax fits: tests/core/fit_math.py.
#pragma once
#include <stdint.h>

// A call that is not inlined would end the vectorisation of the loop around it.
#define LINNET_INLINE [[gnu::always_inline]] inline
#ifndef LINNET_FN  // what a kernel of a GPU may call: core/cuda.h
#define LINNET_FN
#endif

namespace linnet::LINNET_LEVEL {

#ifdef LINNET_CUDA_MATH  // CUDA's functions have libm's names
#define LINNET_LIBM
#define LINNET_LIB(name) ::name
#else
#define LINNET_LIB(name) __builtin_##name
#endif

LINNET_FN inline double exp(double x) { return LINNET_LIB(exp)(x); }
LINNET_FN inline double exp_nonpositive(double x) { return LINNET_LIB(exp)(x); }
LINNET_FN inline double expm1(double x) { return LINNET_LIB(expm1)(x); }
LINNET_FN inline double log(double x) { return LINNET_LIB(log)(x); }
LINNET_FN inline double log1p(double x) { return LINNET_LIB(log1p)(x); }
LINNET_FN inline double tanh(double x) { return LINNET_LIB(tanh)(x); }
LINNET_FN inline double erf(double x) { return LINNET_LIB(erf)(x); }
LINNET_FN inline double pow(double x, double y) { return LINNET_LIB(pow)(x, y); }
LINNET_FN inline double sqrt(double x) { return LINNET_LIB(sqrt)(x); }
LINNET_FN inline double abs(double x) { return LINNET_LIB(fabs)(x); }
LINNET_FN inline float pow(float x, float y) { return LINNET_LIB(powf)(x, y); }
LINNET_FN inline float sqrt(float x) { return LINNET_LIB(sqrtf)(x); }
LINNET_FN inline float abs(float x) { return LINNET_LIB(fabsf)(x); }

#ifdef LINNET_LIBM
LINNET_FN inline float exp(float x) { return LINNET_LIB(expf)(x); }
LINNET_FN inline float exp_nonpositive(float x) { return LINNET_LIB(expf)(x); }
LINNET_FN inline float expm1(float x) { return LINNET_LIB(expm1f)(x); }
LINNET_FN inline float log(float x) { return LINNET_LIB(logf)(x); }
LINNET_FN inline float log1p(float x) { return LINNET_LIB(log1pf)(x); }
LINNET_FN inline float tanh(float x) { return LINNET_LIB(tanhf)(x); }
LINNET_FN inline float erf(float x) { return LINNET_LIB(erff)(x); }
#else

LINNET_INLINE uint32_t to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }
LINNET_INLINE float from_bits(uint32_t x) { return __builtin_bit_cast(float, x); }

/// x = n ln 2 + r with |r| <= ln 2 / 2, for |x| < 2^21 (Cody and Waite). The low bits of `shifted` are n + offset.
/// Here and in exp_reduced, F is float or a vector of them.
template <class F>
struct Reduced {
  F r, n, shifted;
};
template <int offset, class F>
LINNET_INLINE Reduced<F> reduce_exp(F x) {
  constexpr float kRound = 12582912.0f + offset;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  F shifted = x * 1.44269504f + kRound;
  F n = shifted - kRound;
  return {(x - n * 0.693145752f) - n * 1.42860677e-6f, n, shifted};  // n times the first has no error
}
/// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2.
template <class F>
LINNET_INLINE F exp_tail(F r) {
  F q = r * 0.0013869945f + 0.00836625323f;
  q = q * r + 0.0416674428f;
  q = q * r + 0.166665465f;
  return q * r + 0.49999997f;
}
template <class F>
LINNET_INLINE F exp_reduced(F r) {
  return (exp_tail(r) * r + 1.0f) * r + 1.0f;
}

/// 2^n = low * high, each a normal number where 2^n is none; n + 254 are the low bits of `shifted`.
struct TwoPowers {
  float low, high;
};
LINNET_INLINE TwoPowers power_of_two(float shifted) {
  uint32_t bits = to_bits(shifted);
  uint32_t low = (bits << 22) & 0xff800000u;  // the exponent's field of 2^(n / 2), n / 2 rounded down
  return {from_bits(low), from_bits((bits << 23) - low)};
}

LINNET_INLINE float exp(float x) {
  float y = x < -104.0f ? -104.0f : x;  // below: 0. The comparisons let NaN through.
  y = y > 89.0f ? 89.0f : y;            // above: infinity
  Reduced<float> e = reduce_exp<254>(y);
  TwoPowers scale = power_of_two(e.shifted);
  return exp_reduced(e.r) * scale.low * scale.high;
}

/// e^x for x <= 64 alone, in fewer steps: the result times 2^32 is a normal number.
LINNET_INLINE float exp_nonpositive(float x) {
  float y = x < -104.0f ? -104.0f : x;
  Reduced<float> e = reduce_exp<32>(y);
  float large = from_bits(to_bits(exp_reduced(e.r)) + (to_bits(e.shifted) << 23));
  return large * 2.32830644e-10f + (e.n - e.n);  // a NaN would be lost among the bits
}

/// e^x - 1, also where it is near 0: 2^n (e^r - 1) + (2^n - 1).
LINNET_INLINE float expm1(float x) {
  float y = x < -20.0f ? -20.0f : x;
  y = y > 89.0f ? 89.0f : y;
  Reduced<float> e = reduce_exp<254>(y);
  TwoPowers scale = power_of_two(e.shifted);
  float one = from_bits((254u << 23) - to_bits(scale.high));  // 1 / high
  float z = ((exp_tail(e.r) * (e.r * e.r) + e.r) * scale.low + (scale.low - one)) * scale.high;
  return __builtin_copysignf(z, x);
}

/// log(2^k (1 + f)) for sqrt(1/2) <= 1 + f < sqrt(2): log(1 + f) = f - f^2 / 2 + f^3 q(f).
LINNET_INLINE float log_reduced(float k, float f) {
  float q = -0.0763639957f;
  q = q * f + 0.127621993f;
  q = q * f - 0.131596133f;
  q = q * f + 0.142015815f;
  q = q * f - 0.166234091f;
  q = q * f + 0.200012416f;
  q = q * f - 0.250008196f;
  q = q * f + 0.333333313f;
  q = q * f - 0.5f;
  return k * 0.693147182f + (q * (f * f) + f);
}
/// y = log(x) where 0 < x < infinity, and what libm says elsewhere.
LINNET_INLINE float log_limits(float x, float y) {
  y = x > 3.40282347e38f ? x : y;
  float outside = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  return x > 0.0f ? y : outside;
}

LINNET_INLINE float log(float x) {
  float y = x < 1.17549435e-38f ? x * 8388608.0f : x;  // a denormal number times 2^23
  float shift = x < 1.17549435e-38f ? 23.0f : 0.0f;
  uint32_t bits = to_bits(y) - 0x3f3504f3u;  // sqrt(1/2): k is what is left of the exponent
  float k = static_cast<float>(static_cast<int32_t>(bits) >> 23) - shift;
  float f = from_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  return log_limits(x, log_reduced(k, f));
}

/// 1 + x = 2^k (1 + f), but f from x itself: (x - (2^k - 1)) / 2^k, rounded once.
LINNET_INLINE float log1p(float x) {
  float u = 1.0f + x;
  uint32_t bits = to_bits(u) - 0x3f3504f3u;
  float k = static_cast<float>(static_cast<int32_t>(bits) >> 23);
  float scale = from_bits(0x40800000u - (bits & 0xff800000u));  // 4 / 2^k: 1 / 2^128 would be no normal number
  float f = (x * scale + (scale - 4.0f)) * 0.25f;
  return __builtin_copysignf(log_limits(u, log_reduced(k, f)), x);
}

/// 1 - 2 / (e^2x + 1), and a polynomial where that would lose digits.
LINNET_INLINE float tanh(float x) {
  float t = abs(x), s = x * x;
  float y = t > 10.0f ? 10.0f : t;  // above: 1
  Reduced<float> e = reduce_exp<127>(y + y);
  float outer = 1.0f - 2.0f / (exp_reduced(e.r) * from_bits(to_bits(e.shifted) << 23) + 1.0f);
  float q = 0.0164378788f;
  q = q * s - 0.0526720099f;
  q = q * s + 0.133207291f;
  q = q * s - 0.333329469f;
  float inner = q * s * t + t;
  return __builtin_copysignf(t > 0.55f ? outer : inner, x);
}

/// 1 - q(|x|)^4, as the fourth root of 1 - erf is nearly a straight line, and x (1 + q(x^2)) near 0.
LINNET_INLINE float erf(float x) {
  float t = abs(x), s = x * x;
  float y = t > 4.0f ? 4.0f : t;  // above: 1
  float p = -0.000174913119f;
  p = p * y + 0.0031705508f;
  p = p * y - 0.0218427796f;
  p = p * y + 0.0649483204f;
  p = p * y - 0.0482961573f;
  p = p * y - 0.0658135414f;
  p = p * y - 0.3073636f;
  p = p * y + 1.00514233f;
  float outer = 1.0f - (p * p) * (p * p);
  float q = 7.23606863e-05f;
  q = q * s - 0.000782473944f;
  q = q * s + 0.00516773108f;
  q = q * s - 0.026843518f;
  q = q * s + 0.112833641f;
  q = q * s - 0.376126111f;
  q = q * s + 0.128379166f;
  float inner = q * t + t;
  return __builtin_copysignf(t > 1.1f ? outer : inner, x);
}
#endif
#undef LINNET_LIB

/// 1 / (1 + e^-x), from e = e^-|x| so that nothing overflows: 1 - e / (1 + e), or e - e e / (1 + e) for x < 0, where
/// the quotient's error counts for little.
template <class T>
LINNET_FN LINNET_INLINE T sigmoid(T x) {
  T e = exp_nonpositive(-abs(x));
  T part = e / (T(1) + e), whole = x >= 0 ? T(1) : e;
  return whole - whole * part;
}

}  // namespace linnet::LINNET_LEVEL
#undef LINNET_INLINE
