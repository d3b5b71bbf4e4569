// Feature maps for linear attention beside the fused ones: apply one to q and k, then linear_attention with
// FeatureMap::identity. x (..., D) -> (..., features), f32 or f64; row by row, so that none looks along time.
#pragma once
#include "linnet/autograd/variable.h"
#include "linnet/core/random.h"

namespace linnet {

/// max(x, 0)^2, element by element (So et al. 2021, "Primer").
Variable squared_relu(const Variable& x);

/// The D (D + 1) / 2 products of two elements of a row: x_i^2, and sqrt(2) x_i x_j for i < j, in the order 00 01 ..
/// 0(D-1) 11 .. Exactly phi(x) . phi(y) = (x . y)^2, which is not negative, though a feature may be. Kept: x.
Variable polynomial_features(const Variable& x);

/// Rows w_i ~ N(0, I) of length D, (m, D), that are orthogonal within each block of D rows: directions by Gram and
/// Schmidt, lengths drawn apart, so that each row alone is normal (Yu et al. 2016, "Orthogonal Random Features";
/// Choromanski et al. 2020, section 2.4). Errors: m below 1, a negative D, a dtype that is not f32 or f64.
Tensor orthogonal_features(int64_t m, int64_t dim, Generator& generator, Dtype dtype = Dtype::f32);

/// Random Fourier features of the RBF kernel (Rahimi and Recht 2007), in the form without a phase, which errs less:
///
///     phi(x) = (cos(w_1 . x), .., cos(w_m . x), sin(w_1 . x), .., sin(w_m . x)) / sqrt(m)
///     E[phi(x) . phi(y)] = exp(-|x - y|^2 / 2)
///
/// w (m, D), as orthogonal_features gives it, is a constant; 2 m features. The error falls as 1 / sqrt(m). An estimate
/// may be negative where the kernel is small: then a sum of them can come near 0, and an attention's division with it.
/// Kept: the features (and by `linear`, x and w). Errors: a w that does not fit.
Variable fourier_features(const Variable& x, const Tensor& w);

struct FavorOptions {
  bool of_queries = false;  ///< subtract each row's largest exponent: see below
};

/// FAVOR+, positive random features of the softmax kernel (Choromanski et al. 2020, "Rethinking Attention with
/// Performers", lemma 1):
///
///     phi(x)_i = exp(w_i . x - |x|^2 / 2) / sqrt(m)         E[phi(x) . phi(y)] = exp(x . y)
///
/// w (m, D), as orthogonal_features gives it, is a constant; m features. Multiply q and k by D^(-1/4) before to get
/// softmax attention's usual scale. What keeps the exponentials in range must leave an attention what it is:
///   of a query, a factor of its own cancels in the division. With of_queries its largest exponent is subtracted, so
///     that no query overflows or underflows; without the division (normalise = false) this must not be used;
///   of a key, a factor of its own would weigh it against the others, and a maximum over all keys, as in the paper's
///     code, would look ahead in time. So there is none: an exponent is at most |w_i|^2 / 2, near that only where x
///     lies by w_i, and is cut at 60 (f32) or 500 (f64), where its slope is 0.
/// Composed of linear, square, sum, max, sub, clamp and exp. Errors: a w that does not fit.
Variable favor_features(const Variable& x, const Tensor& w, const FavorOptions& options = {});

}  // namespace linnet
