// dropout: elements set to 0 at random while training.
#pragma once
#include "linnet/autograd/variable.h"

namespace linnet {

/// y_i = x_i / (1 - p) where word_i >= p 2^32, else 0 (Srivastava et al. 2014); word_i is the i-th of x.numel() words
/// taken from default_generator(), so that the mask depends neither on the number of threads nor on the device.
///
/// Outside training(), and for p = 0, y is x itself and no words are taken. p = 1 gives zeros.
/// Backward: dx_i = dy_i / (1 - p) where word_i >= p 2^32, else 0. Nothing is kept: the words are made again.
/// Errors: p outside 0 .. 1, a dtype that is not f32 or f64.
Variable dropout(const Variable& x, double p);

}  // namespace linnet
