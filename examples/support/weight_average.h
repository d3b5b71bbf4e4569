// WeightAverage: a moving average of a model's weights, which often does better than the weights themselves.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "linnet/nn/module.h"

namespace example {

/// After t updates: a = d a + (1 - d) w with d = min(decay, (1 + t) / (10 + t)). Decay 0: the weights themselves.
class WeightAverage {
 public:
  WeightAverage(const linnet::nn::Module& net, double decay);

  void update();
  /// Exchanges the average with the weights; once more puts them back.
  void swap();
  linnet::StateDict state_dict() const;
  void load_state_dict(const linnet::StateDict& state);  ///< throws, changing nothing, where a part does not fit

 private:
  std::vector<std::pair<std::string, linnet::Variable>> weights_;
  std::vector<linnet::Tensor> averages_;
  double decay_;
  uint64_t updates_ = 0;
};

}  // namespace example
