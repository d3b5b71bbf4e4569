#include "support/predictions.h"

#include <vector>

#include "linnet/core/compute.h"

namespace example {

int64_t count_correct(const linnet::Tensor& logits, const linnet::Tensor& targets) {
  const std::vector<int32_t> guess = linnet::compute::argmax(logits, -1).to_vector<int32_t>();
  const std::vector<int32_t> target = targets.to_vector<int32_t>();
  int64_t correct = 0;
  for (size_t i = 0; i < guess.size(); ++i) correct += guess[i] == target[i];  // no guess is kIgnored
  return correct;
}

}  // namespace example
