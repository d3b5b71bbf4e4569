// Timing: what a token costs at a position, as the recurrent form writes on.
#pragma once
#include <string>
#include <vector>

#include "language_model/writer.h"

namespace language_model {

/// Seconds a token by position, in stretches of equal length.
struct Times {
  std::vector<double> position;  ///< the middle of each stretch
  std::vector<double> seconds;   ///< the least over it
};
/// Writes `positions` tokens from a state that never begins anew, `rounds` times. The least time counts: what else the
/// machine does only adds, and a long step is interrupted more often than a short one.
Times time_tokens(const linnet::models::CausalLM& net, const Vocabulary& vocabulary, int64_t positions, int rounds);

}  // namespace language_model
