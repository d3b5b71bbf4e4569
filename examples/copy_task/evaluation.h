// Evaluation of a model: accuracy on fresh sequences, copying token by token, and finding what is hidden.
#pragma once
#include <functional>
#include <vector>

#include "copy_task/model.h"

namespace copy_task {

struct Score {
  double loss = 0, accuracy = 0;
  int64_t sequences = 0;
};

/// Over 2,048 fresh sequences from the evaluation stream. Ends early, with fewer, once stop() is true.
Score evaluate(const Learner& learner, const std::function<bool()>& stop = {});

struct Copied {
  std::vector<int32_t> given, copy{};
  int64_t mistakes = 0;
  double difference = 0, logit = 0;  ///< the largest between recurrent and parallel logits, and the largest of these
};

/// Feeds `0 w 0` token by token, takes the likeliest symbol, feeds it, and so on; then runs the same tokens in
/// parallel. Attention without a recurrent form runs the whole sequence again for each symbol, and there is nothing to
/// compare with.
Copied copy_recurrently(const linnet::models::CausalLM& net, const std::vector<int32_t>& w);

/// Throws Error where the difference is above 1e-4 max(1, logit): f32 rounds large logits more coarsely.
void check_agreement(double difference, double logit);

/// Prints each string with its copy, mistakes marked, and the largest difference; then check_agreement.
void show_copies(const linnet::models::CausalLM& net, const std::vector<std::vector<int32_t>>& strings);
/// Prints a few masked sequences with what the model finds there, mistakes marked.
void show_found(const Learner& learner);
std::vector<std::vector<int32_t>> demonstration_strings(const TaskSize& size, uint64_t seed, int count);

}  // namespace copy_task
