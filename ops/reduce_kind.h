// Reduce: how a loss gathers its elements.
#pragma once
#include "linnet/core/error.h"

namespace linnet {

/// none keeps one value an element; sum adds them; mean divides the sum by their number.
enum class Reduce { none, sum, mean };

inline void check_reduce(const char* op, Reduce reduce) {
  LINNET_CHECK(reduce >= Reduce::none && reduce <= Reduce::mean, op, ": no reduction ", static_cast<int>(reduce));
}

}  // namespace linnet
