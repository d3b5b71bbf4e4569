#include "support/weight_average.h"

#include <algorithm>

#include "linnet/core/compute.h"

namespace example {

using linnet::Tensor;

WeightAverage::WeightAverage(const linnet::nn::Module& net, double decay)
    : weights_(net.named_parameters()), decay_(decay) {
  if (decay_ == 0) return;
  for (const auto& [name, weight] : weights_) averages_.push_back(weight.value().clone());
}

void WeightAverage::update() {
  const double t = static_cast<double>(updates_++), decay = std::min(decay_, (1 + t) / (10 + t));
  for (size_t i = 0; i < averages_.size(); ++i) {
    linnet::compute::scale_inplace(averages_[i], decay);
    linnet::compute::accumulate_inplace(averages_[i], linnet::compute::scale(weights_[i].second.value(), 1 - decay));
  }
}

void WeightAverage::swap() {
  for (size_t i = 0; i < averages_.size(); ++i) {
    Tensor weight = weights_[i].second.value().clone();
    weights_[i].second.mutable_value().copy_from(averages_[i]);
    averages_[i] = weight;
  }
}

linnet::StateDict WeightAverage::state_dict() const {
  linnet::StateDict state;
  state.set_integer("updates", updates_);
  for (size_t i = 0; i < averages_.size(); ++i) state.set(weights_[i].first, averages_[i]);
  return state;
}

void WeightAverage::load_state_dict(const linnet::StateDict& state) {
  std::vector<Tensor> loaded;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const Tensor& given = state.get(weights_[i].first);
    LINNET_CHECK(given.shape() == averages_[i].shape() && given.dtype() == averages_[i].dtype(), "average of ",
                 weights_[i].first, ": ", given.shape(), " ", given.dtype(), " given, ", averages_[i].shape(), " ",
                 averages_[i].dtype(), " wanted");
    loaded.push_back(given.clone());
  }
  updates_ = state.integer("updates");
  averages_ = loaded;
}

}  // namespace example
