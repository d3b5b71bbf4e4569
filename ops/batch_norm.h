// batch_norm: every channel brought to mean 0 and variance 1 over all steps of a batch, then scaled and shifted.
#pragma once
#include "linnet/autograd/variable.h"
#include "linnet/ops/masks.h"

namespace linnet {

struct BatchNormOptions {
  double momentum =
      0.9;  ///< how much of the running statistics stays in a training step, 0 .. 1 (PyTorch's is 1 - this)
  double eps = 1e-5;
  const KeyMask* keys = nullptr;  ///< for x (batch, time, dim): padding, which is left out
};

/// The statistics that hold where nothing trains: mean and variance, (dim).
struct RunningStatistics {
  Tensor& mean;
  Tensor& variance;
};

/// y = (x - mean) / sqrt(variance + eps) * weight + bias for each channel (Ioffe and Szegedy 2015, algorithm 1).
///
/// x (batch, time, dim) or (n, dim), y as x; weight and bias (dim), or undefined. In training(), mean and (biased)
/// variance are those of the channel over all rows, and running = momentum running + (1 - momentum) of the batch;
/// otherwise they are the running ones, which stay. Rows that `keys` leaves out are not read: their y and their
/// gradient are 0. Where no row is left, the running statistics stay. A constant channel gives exactly its bias, with
/// eps 0, too, and then gradient 0. Backward in training, with xhat = (x - mean) rstd and h = weight dy: dx = rstd (h -
/// mean(h) - xhat mean(h xhat)), else dx = rstd h; dweight = sum of dy xhat, dbias = sum of dy. Errors: sizes that do
/// not fit, a mask for (n, dim), eps that is negative or not finite, momentum outside 0 .. 1, dtypes or devices that
/// differ.
Variable batch_norm(const Variable& x, const Variable& weight, const Variable& bias, const RunningStatistics& running,
                    const BatchNormOptions& options = {});

}  // namespace linnet
