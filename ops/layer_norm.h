// layer_norm: every row brought to mean 0 and variance 1, then scaled and shifted.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y = (x - mean) / sqrt(variance + eps) * weight + bias, mean and (biased) variance taken over the trailing axes that
/// weight has (Ba, Kiros, Hinton 2016).
///
/// x (..., norm), weight (norm), bias (norm), y as x; norm may be several axes. Weight or bias may be undefined; where
/// both are, the last axis is normalised. Two passes: sum x, then sum (x - mean)^2; a constant row gives exactly its
/// bias, with eps 0, too, and then gradient 0. A difference from the mean whose square overflows (1.8e19 in f32) makes
/// its row all bias. Backward, with xhat = (x - mean) rstd and h = weight dy: dx = rstd (h - mean(h) - xhat mean(h
/// xhat)), dweight = sum of dy xhat, dbias = sum of dy over all rows, in an order that the number of threads does not
/// change. Errors: x that does not end in weight's shape, eps that is negative or not finite, dtypes or devices that
/// differ.
Variable layer_norm(const Variable& x, const Variable& weight = {}, const Variable& bias = {}, double eps = 1e-5);

/// The same without a tape, into y, which has x's shape and is not x.
void layer_norm_into(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y);

}  // namespace linnet
