// Positions: which of nn/positions.h a model has, chosen by its options.
#pragma once
#include <variant>

#include "linnet/nn/positions.h"

namespace linnet::models {

enum class Positions { learned, sinusoidal };

using AnyPositions = std::variant<nn::LearnedPositions, nn::SinusoidalPositions>;

/// A part of `parent` of this name. Learned positions want a max_time of at least 1; for sinusoidal ones 0 is no limit.
AnyPositions make_positions(nn::Module& parent, const std::string& name, Positions kind, int64_t max_time, int64_t dim);

}  // namespace linnet::models
