#include "linnet/models/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace linnet::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t check_logits(std::span<const double> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    LINNET_CHECK(logits[i] < kInfinity, "sample_logits: logit ", i, " is ", logits[i], ", want a number");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  LINNET_CHECK(best != logits.end() && *best > -kInfinity, "sample_logits: none of ", logits.size(),
               " logits is above -infinity");
  return static_cast<size_t>(best - logits.begin());
}

}  // namespace

void check_sampling(const char* op, const SamplingOptions& options) {
  LINNET_CHECK(options.temperature >= 0 && options.temperature < kInfinity, op, ": temperature ", options.temperature,
               ", want 0 (greedy) or a finite number above");
  LINNET_CHECK(options.top_k >= 0, op, ": top_k ", options.top_k, ", want 0 (all) or a number of classes");
  LINNET_CHECK(options.top_p > 0 && options.top_p <= 1, op, ": top_p ", options.top_p, ", want above 0 and at most 1");
}

int64_t sample_weights(std::span<const double> weights, double u) {
  LINNET_CHECK(u >= 0 && u < 1, "sample_weights: u is ", u, ", want at least 0 and below 1");
  double total = 0;
  int64_t last = -1;
  for (size_t i = 0; i < weights.size(); ++i) {
    LINNET_CHECK(weights[i] >= 0 && weights[i] < kInfinity, "sample_weights: weight ", i, " is ", weights[i],
                 ", want a finite number that is not negative");
    total += weights[i];
    if (weights[i] > 0) last = static_cast<int64_t>(i);
  }
  LINNET_CHECK(last >= 0, "sample_weights: none of ", weights.size(), " weights is above 0");
  LINNET_CHECK(total < kInfinity, "sample_weights: the sum of ", weights.size(), " weights overflows");
  double sum = 0;
  for (int64_t i = 0; i < last; ++i) {
    const double weight = weights[static_cast<size_t>(i)];
    sum += weight;
    if (weight > 0 && sum > u * total) return i;
  }
  return last;
}

int64_t sample_weights(std::span<const double> weights, Generator& generator) {
  return sample_weights(weights, generator.uniform());
}

int64_t sample_logits(std::span<const double> logits, const SamplingOptions& options, Generator& generator) {
  check_sampling("sample_logits", options);
  const size_t best = check_logits(logits);
  if (options.temperature == 0) return static_cast<int64_t>(best);

  std::vector<double> weights(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) weights[i] = std::exp((logits[i] - logits[best]) / options.temperature);
  const bool cut_k = options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size());
  if (cut_k || options.top_p < 1) {
    std::vector<size_t> order(logits.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    size_t kept = cut_k ? static_cast<size_t>(options.top_k) : order.size();
    double total = 0, sum = 0;
    for (size_t i = 0; i < kept; ++i) total += weights[order[i]];
    for (size_t i = 0; options.top_p < 1 && i < kept; ++i) {
      sum += weights[order[i]];
      if (sum >= options.top_p * total) kept = i + 1;
    }
    for (size_t i = kept; i < order.size(); ++i) weights[order[i]] = 0;
  }
  return sample_weights(weights, generator);
}

Tensor sample_logits(const Tensor& logits, const SamplingOptions& options, Generator& generator) {
  LINNET_CHECK(logits.defined(), "sample_logits: the logits are undefined");
  LINNET_CHECK(logits.rank() == 2, "sample_logits: logits ", logits.shape(), " are not (batch, classes)");
  if (!is_float(logits.dtype())) fail_not_float("sample_logits", logits.dtype());
  const std::vector<double> values = logits.to(Device::cpu).to(Dtype::f64).to_vector<double>();
  const auto classes = static_cast<size_t>(logits.size(1));
  std::vector<int32_t> chosen;
  Generator drawn = generator;
  for (size_t b = 0; b < static_cast<size_t>(logits.size(0)); ++b) {
    const auto row = std::span(values).subspan(b * classes, classes);
    chosen.push_back(static_cast<int32_t>(sample_logits(row, options, drawn)));
  }
  generator = drawn;  // last: a call that fails takes none
  return Tensor::from(chosen, {logits.size(0)}).to(logits.device());
}

}  // namespace linnet::models
