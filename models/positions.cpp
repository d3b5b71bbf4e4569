#include "linnet/models/positions.h"

namespace linnet::models {

AnyPositions make_positions(nn::Module& parent, const std::string& name, Positions kind, int64_t max_time,
                            int64_t dim) {
  if (kind == Positions::sinusoidal) {
    LINNET_CHECK(max_time >= 0, parent.label(), ": max_time ", max_time, " is negative");
    return AnyPositions(std::in_place_type<nn::SinusoidalPositions>, parent, name,
                        nn::SinusoidalPositionsOptions{.dim = dim});
  }
  LINNET_CHECK(max_time >= 1, parent.label(), ": max_time ", max_time, ", learned positions want at least 1");
  return AnyPositions(std::in_place_type<nn::LearnedPositions>, parent, name,
                      nn::LearnedPositionsOptions{.max_time = max_time, .dim = dim});
}

}  // namespace linnet::models
