#include "copy_task/evaluation.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "linnet/core/compute.h"
#include "linnet/ops/cross_entropy.h"
#include "support/predictions.h"

namespace copy_task {

using linnet::Tensor;

namespace {

constexpr int64_t kSequences = 2048, kBatch = 64;

double allowed_difference(double logit) { return 1e-4 * std::max(1.0, logit); }

std::string cells(const std::vector<int32_t>& symbols) {
  std::string out;
  for (int32_t symbol : symbols) {
    const std::string text = std::to_string(symbol);
    out += std::string(text.size() < 4 ? 4 - text.size() : 1, ' ') + text;
  }
  return out;
}

void print(const Copied& result, const char* given = "given ", const char* made = "copied") {
  std::cout << "  " << given << cells(result.given) << "\n  " << made << cells(result.copy) << "\n";
  if (result.mistakes == 0) return;
  std::string marks;
  for (size_t i = 0; i < result.copy.size(); ++i) {
    const size_t width = std::max<size_t>(4, 1 + std::to_string(result.copy[i]).size());
    marks += std::string(width - 1, ' ') + (result.copy[i] == result.given[i] ? ' ' : '^');
  }
  std::cout << "        " << marks << "  " << result.mistakes << (result.mistakes == 1 ? " mistake\n" : " mistakes\n");
}

int64_t mistakes_in(const Copied& result) {
  int64_t mistakes = 0;
  for (size_t i = 0; i < result.given.size(); ++i) mistakes += result.copy[i] != result.given[i];
  return mistakes;
}

void print_sum(int64_t mistakes, int64_t symbols) {
  std::cout << mistakes << (mistakes == 1 ? " mistake" : " mistakes") << " in " << symbols << " symbols";
}

}  // namespace

Score evaluate(const Learner& learner, const std::function<bool()>& stop) {
  Score score;
  int64_t correct = 0, counted = 0;
  double loss = 0;
  for (int64_t i = 0; i * kBatch < kSequences && !(stop && stop()); ++i) {
    const Batch batch = learner.batch(kBatch, Stream::evaluation, static_cast<uint64_t>(i));
    const linnet::Variable logits = learner.logits(batch);
    loss +=
        linnet::cross_entropy(logits, batch.targets, {.reduce = linnet::Reduce::sum, .ignore_index = example::kIgnored})
            .item();
    correct += example::count_correct(logits.value(), batch.targets);
    counted += batch.counted;
    score.sequences += kBatch;
  }
  if (counted > 0) {
    score.loss = loss / static_cast<double>(counted);
    score.accuracy = static_cast<double>(correct) / static_cast<double>(counted);
  }
  return score;
}

Copied copy_recurrently(const linnet::models::CausalLM& net, const std::vector<int32_t>& w) {
  const int64_t n = static_cast<int64_t>(w.size());
  std::vector<int32_t> tokens{kSeparator};
  tokens.insert(tokens.end(), w.begin(), w.end());
  tokens.push_back(kSeparator);

  Copied result{.given = w};
  if (!net.has_steps()) {
    const Tensor prompt = Tensor::from(tokens, {1, n + 2});
    result.copy = net.generate(prompt, {.tokens = n, .temperature = 0}).to_vector<int32_t>();
    result.mistakes = mistakes_in(result);
    return result;
  }
  std::vector<float> recurrent;
  auto state = net.make_state(1);
  for (size_t t = 0; t < tokens.size(); ++t) {
    const Tensor logits = net.step(Tensor::from({tokens[t]}, {1}), state);
    const std::vector<float> row = logits.to_vector<float>();
    recurrent.insert(recurrent.end(), row.begin(), row.end());
    if (static_cast<int64_t>(t) <= n || static_cast<int64_t>(result.copy.size()) == n) continue;
    result.copy.push_back(linnet::compute::argmax(logits, -1).to_vector<int32_t>()[0]);
    if (static_cast<int64_t>(result.copy.size()) < n) tokens.push_back(result.copy.back());
  }
  result.mistakes = mistakes_in(result);

  const int64_t time = static_cast<int64_t>(tokens.size());
  const std::vector<float> parallel = net(Tensor::from(tokens, {1, time})).value().to_vector<float>();
  for (size_t i = 0; i < parallel.size(); ++i) {
    const double difference = std::abs(static_cast<double>(parallel[i]) - recurrent[i]);
    result.difference = std::isnan(difference) ? INFINITY : std::max(result.difference, difference);
    result.logit = std::max(result.logit, std::abs(static_cast<double>(parallel[i])));
  }
  return result;
}

void check_agreement(double difference, double logit) {
  LINNET_CHECK(std::isfinite(difference) && difference <= allowed_difference(logit),
               "recurrent and parallel logits differ by ", difference, ", more than ", allowed_difference(logit),
               " where the largest logit is ", logit);
}

void show_copies(const linnet::models::CausalLM& net, const std::vector<std::vector<int32_t>>& strings) {
  std::cout << "Copying token by token, " << (net.has_steps() ? "in the recurrent form" : "all of it again each time")
            << ":\n";
  double largest = 0, logit = 0;
  int64_t mistakes = 0, symbols = 0;
  for (const auto& w : strings) {
    const Copied result = copy_recurrently(net, w);
    print(result);
    largest = std::max(largest, result.difference);
    logit = std::max(logit, result.logit);
    mistakes += result.mistakes;
    symbols += static_cast<int64_t>(w.size());
  }
  print_sum(mistakes, symbols);
  if (!net.has_steps()) {
    std::cout << std::endl;
    return;
  }
  std::cout << "; largest difference between recurrent and parallel logits: " << largest
            << " (allowed: " << allowed_difference(logit) << ")" << std::endl;
  check_agreement(largest, logit);
}

void show_found(const Learner& learner) {
  constexpr int64_t kShown = 3;
  const Batch batch = learner.batch(kShown, Stream::demonstration, 0);
  const std::vector<int32_t> best = linnet::compute::argmax(learner.logits(batch).value(), -1).to_vector<int32_t>();
  const std::vector<int32_t> inputs = batch.inputs.to_vector<int32_t>(), targets = batch.targets.to_vector<int32_t>();
  std::cout << "Finding hidden symbols:\n";
  int64_t mistakes = 0;
  for (size_t row = 0; row < kShown; ++row) {
    Copied hidden;
    for (size_t at = row * static_cast<size_t>(batch.inputs.size(1)),
                end = at + static_cast<size_t>(batch.lengths[row]);
         at < end; ++at) {
      if (targets[at] == example::kIgnored) continue;
      hidden.given.push_back(targets[at]);
      hidden.copy.push_back(best[at]);
    }
    hidden.mistakes = mistakes_in(hidden);
    mistakes += hidden.mistakes;
    print(hidden, "hidden", "found ");
  }
  print_sum(mistakes, batch.counted);
  std::cout << std::endl;
}

std::vector<std::vector<int32_t>> demonstration_strings(const TaskSize& size, uint64_t seed, int count) {
  linnet::Generator generator = generator_of(seed, Stream::demonstration, 0);
  std::vector<std::vector<int32_t>> strings;
  for (int i = 0; i < count; ++i) strings.push_back(random_string(size, generator));
  return strings;
}

}  // namespace copy_task
