#include "language_model/timing.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace language_model {
namespace {

constexpr int64_t kStretches = 64;

}  // namespace

Times time_tokens(const linnet::models::CausalLM& net, const Vocabulary& vocabulary, int64_t positions, int rounds) {
  using Clock = std::chrono::steady_clock;
  const int64_t length = (positions + kStretches - 1) / kStretches;
  Times times;
  for (int round = 0; round < rounds; ++round) {
    Draw draw(vocabulary, {});
    linnet::models::LMState state = net.make_state(1, positions);
    int32_t token = linnet::data::kEnd;
    size_t stretch = 0;
    for (int64_t begin = 0; begin < positions; begin += length, ++stretch) {
      const int64_t end = std::min(begin + length, positions);
      if (round == 0) {
        times.position.push_back(static_cast<double>(begin + end - 1) / 2);
        times.seconds.push_back(std::numeric_limits<double>::infinity());
      }
      double& least = times.seconds[stretch];
      for (int64_t position = begin; position < end; ++position) {
        const Clock::time_point start = Clock::now();
        token = draw(step(net, token, state));
        least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  }
  return times;
}

}  // namespace language_model
