// Elementwise operations: one input, or two with broadcasting. Formulas hold element by element, f32 or f64; other
// dtypes are an error naming the op. NaN, infinities and -0 go through as in the functions of <cmath>. NaN in, NaN out.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

// One input. Each is a row of core/functors.h, which also says whether the input, the output or nothing is kept.

Variable neg(const Variable& x);      ///< -x
Variable abs(const Variable& x);      ///< |x|; slope 0 at 0
Variable exp(const Variable& x);      ///< e^x
Variable log(const Variable& x);      ///< ln x; -inf at 0, NaN below
Variable sqrt(const Variable& x);     ///< NaN below 0; slope infinite at 0
Variable square(const Variable& x);   ///< x^2
Variable tanh(const Variable& x);     ///< hyperbolic tangent
Variable sigmoid(const Variable& x);  ///< 1 / (1 + e^-x)
Variable relu(const Variable& x);     ///< max(x, 0); slope 0 at 0
/// x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel 2016), with the exact erf.
Variable gelu(const Variable& x);
/// The same paper's approximation: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Variable gelu_tanh(const Variable& x);
/// elu(x) + 1, the feature map of linear attention: x + 1 for x >= 0, e^x for x < 0, small values kept. Slope min(y,
/// 1).
Variable elu1(const Variable& x);
Variable softplus(const Variable& x);  ///< ln(1 + e^x), as max(x, 0) + log1p(e^-|x|)

Variable elu(const Variable& x, double alpha = 1);  ///< x for x > 0, alpha (e^x - 1) for x <= 0
/// min(max(x, low), high); slope 1 within and on the bounds, 0 outside. An error unless low <= high; a bound may be
/// infinite.
Variable clamp(const Variable& x, double low, double high);
/// x^exponent. Exponent 0 gives 1 with slope 0 everywhere, 0 and NaN included.
Variable pow(const Variable& x, double exponent);

// Two inputs, of the same dtype; shapes broadcast as in NumPy: aligned at the end, sizes equal or 1. The gradient of an
// input that was repeated is summed back to its shape. Errors: shapes that do not broadcast, dtypes or devices that
// differ.

Variable add(const Variable& a, const Variable& b);  ///< a + b; both get dy itself where shapes agree; keeps nothing
Variable sub(const Variable& a, const Variable& b);  ///< a - b; keeps nothing
Variable mul(const Variable& a, const Variable& b);  ///< a b; keeps a factor only where the other wants a gradient
Variable div(const Variable& a, const Variable& b);  ///< a / b
/// a^b. The gradient of b, dy a^b ln a, is 0 at a = 0 with b >= 0 and NaN for a < 0; a constant b gets none.
Variable pow(const Variable& a, const Variable& b);
Variable maximum(const Variable& a, const Variable& b);  ///< where a = b, half of the gradient goes to each
Variable minimum(const Variable& a, const Variable& b);  ///< where a = b, half of the gradient goes to each

inline Variable operator-(const Variable& x) { return neg(x); }
inline Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
inline Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
inline Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
inline Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }

// With a number, which takes the dtype of the Variable. All but the two divisions are the recorded op `affine`, p x +
// q, which keeps nothing.
Variable operator+(const Variable& x, double c);
Variable operator-(const Variable& x, double c);
Variable operator-(double c, const Variable& x);
Variable operator*(const Variable& x, double c);
Variable operator/(const Variable& x, double c);  ///< divides, so that it rounds as the division does
Variable operator/(double c, const Variable& x);
inline Variable operator+(double c, const Variable& x) { return x + c; }
inline Variable operator*(double c, const Variable& x) { return x * c; }

}  // namespace linnet
