// exp, log, tanh, sigmoid, erf and their kin, written so that a plain loop over them is vectorised: no branch, no
// table, no call. Included once per level; everything lies in the level's own namespace. The level plain, and every
// f64, takes libm. Accuracy in f32: about 1 to 2 units in the last place (tests/core/test_math.cpp).
#pragma once
#include <stdint.h>

namespace linnet::LINNET_LEVEL {

inline double exp(double x) { return __builtin_exp(x); }
inline double expm1(double x) { return __builtin_expm1(x); }
inline double log(double x) { return __builtin_log(x); }
inline double log1p(double x) { return __builtin_log1p(x); }
inline double tanh(double x) { return __builtin_tanh(x); }
inline double erf(double x) { return __builtin_erf(x); }
inline double pow(double x, double y) { return __builtin_pow(x, y); }
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline double abs(double x) { return __builtin_fabs(x); }
inline float pow(float x, float y) { return __builtin_powf(x, y); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float abs(float x) { return __builtin_fabsf(x); }

#ifdef LINNET_LIBM
inline float exp(float x) { return __builtin_expf(x); }
inline float expm1(float x) { return __builtin_expm1f(x); }
inline float log(float x) { return __builtin_logf(x); }
inline float log1p(float x) { return __builtin_log1pf(x); }
inline float tanh(float x) { return __builtin_tanhf(x); }
inline float erf(float x) { return __builtin_erff(x); }
#else

/// x = n ln 2 + r with |r| <= ln 2 / 2; p = e^r - 1. Cody and Waite's reduction, Cephes' polynomial.
struct Reduced {
  float p;
  int32_t n;
};
inline Reduced reduce_exp(float x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  float shifted = x * 1.44269504f + kRound;
  float n = shifted - kRound;
  float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float q = 1.9875691500e-4f;
  q = q * r + 1.3981999507e-3f;
  q = q * r + 8.3334519073e-3f;
  q = q * r + 4.1665795894e-2f;
  q = q * r + 1.6666665459e-1f;
  q = q * r + 5.0000001201e-1f;
  uint32_t bits = __builtin_bit_cast(uint32_t, shifted) - __builtin_bit_cast(uint32_t, kRound);
  return {q * (r * r) + r, static_cast<int32_t>(bits)};
}
/// 2^n for -126 <= n <= 127.
inline float power_of_two(int32_t n) { return __builtin_bit_cast(float, static_cast<uint32_t>(n + 127) << 23); }

inline float exp(float x) {
  float y = x < -104.0f ? -104.0f : x;  // below: 0. The comparisons let NaN through.
  y = y > 89.0f ? 89.0f : y;            // above: infinity
  Reduced e = reduce_exp(y);
  int32_t n = e.n < -160 ? -160 : e.n;  // NaN leaves any number in n
  n = n > 160 ? 160 : n;
  int32_t half = n >> 1;  // in two steps, through the denormals
  return (e.p + 1.0f) * power_of_two(half) * power_of_two(n - half);
}

/// e^x - 1, also where it is near 0.
inline float expm1(float x) {
  float y = x < -30.0f ? -30.0f : x;
  y = y > 89.0f ? 89.0f : y;
  Reduced e = reduce_exp(y);
  int32_t n = e.n < -60 ? -60 : e.n;
  n = n > 160 ? 160 : n;
  int32_t half = n >> 1;
  float low = power_of_two(half), high = power_of_two(n - half);
  float small = e.p * low * high + (low * high - 1.0f);
  float large = (e.p + 1.0f) * low * high;  // low * high may be infinite where the product is not
  return n > 60 ? large : small;
}

/// fdlibm's form: x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), s = f / (2 + f), log(1 + f) = f - f^2/2 + s (f^2/2
/// + R(s^2)).
inline float log(float x) {
  float tiny = x < 1.17549435e-38f ? x * 8388608.0f : x;
  float shift = x < 1.17549435e-38f ? 23.0f : 0.0f;
  uint32_t bits = __builtin_bit_cast(uint32_t, tiny) + (0x3f800000u - 0x3f3504f3u);
  float k = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) - shift;
  float f = __builtin_bit_cast(float, (bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
  float r = z * (0.66666667f + z * (0.40000000f + z * (0.28571429f + z * (0.22222222f + z * 0.18181818f))));
  float y = k * 0.693359375f - ((half - (s * (half + r) - k * 2.12194440e-4f)) - f);
  y = x > 3.40282347e38f ? x : y;
  y = x == 0.0f ? -__builtin_inff() : y;
  return x >= 0.0f ? y : __builtin_nanf("");
}

inline float log1p(float x) {
  float u = 1.0f + x;
  float y = log(u) * (x / (u - 1.0f));  // Kahan: the rounding of 1 + x is undone
  return u == 1.0f || u > 3.40282347e38f ? x : y;
}

inline float tanh(float x) {
  float y = abs(x);
  y = y > 12.0f ? 12.0f : y;
  float e = expm1(2.0f * y);
  return __builtin_copysignf(e / (e + 2.0f), x);
}

/// Two polynomials that meet at 0.93 (minimax fits by N. Juffa).
inline float erf(float x) {
  float t = abs(x), s = x * x;
  float r = -1.72853470e-5f * t + 3.83197126e-4f;
  float u = -3.88396438e-3f * t + 2.42546219e-2f;
  r = r * s + u;
  r = r * t - 1.06777877e-1f;
  r = r * t - 6.34846687e-1f;
  r = r * t - 1.28717512e-1f;
  r = r * t - t;
  r = t > 4.0f ? -30.0f : r;
  float outer = __builtin_copysignf(1.0f - exp(r), x);
  float q = -5.96761703e-4f;
  q = q * s + 4.99119423e-3f;
  q = q * s - 2.67681349e-2f;
  q = q * s + 1.12819925e-1f;
  q = q * s - 3.76125336e-1f;
  q = q * s + 1.28379166e-1f;
  float inner = q * x + x;
  return t > 0.927734375f ? outer : inner;
}
#endif

/// 1 / (1 + e^-x), from e^-|x| so that nothing overflows.
template <class T>
inline T sigmoid(T x) {
  T e = exp(-abs(x));
  return (x >= 0 ? T(1) : e) / (T(1) + e);
}

}  // namespace linnet::LINNET_LEVEL
