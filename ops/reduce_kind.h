// Reduce: how a loss gathers its elements.
#pragma once

namespace linnet {

/// none keeps one value an element; sum adds them; mean divides the sum by their number.
enum class Reduce { none, sum, mean };

}  // namespace linnet
