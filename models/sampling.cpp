#include "linnet/models/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/ops/sample.h"

namespace linnet::models {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Row b draws from a sequence of its own.
Generator row_generator(const Generator& generator, int64_t b) {
  return {generator.seed, generator.stream ^ stream_of("row " + std::to_string(b)), generator.offset};
}

/// The places of the largest logits, on the CPU; undefined where a row has none that is a number.
Tensor largest_on_cuda(const Tensor& logits) {
  const Tensor largest = compute::reduce(compute::Reduction::max, logits, std::array<int64_t, 1>{1}, false);
  const std::vector<double> values = largest.to(Dtype::f64).to_vector<double>();
  if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) return {};
  return compute::argmax(logits, 1).to(Device::cpu);
}

/// One class a row, i32 (batch) of the CPU, chosen by a GPU where the logits lie; row b's number is uniform(b).
/// Undefined elsewhere, and where a row's logits are wrong: the way over the CPU says how.
template <class Uniform>
Tensor chosen_on_cuda(const Tensor& logits, const SamplingOptions& options, Uniform uniform) {
  if (logits.device() != Device::cuda || logits.numel() == 0) return {};
  if (options.temperature == 0) return largest_on_cuda(logits);
  std::vector<double> u;
  for (int64_t b = 0; b < logits.size(0); ++b) u.push_back(uniform(static_cast<size_t>(b)));
  const Tensor tokens =
      sample_rows(logits, u, {.temperature = options.temperature, .top_k = options.top_k, .top_p = options.top_p});
  const int32_t* token = tokens.data<int32_t>();
  return std::all_of(token, token + u.size(), [](int32_t t) { return t >= 0; }) ? tokens : Tensor();
}

}  // namespace

size_t largest_logit(const char* op, std::span<const double> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    LINNET_CHECK(logits[i] < kInfinity, op, ": logit ", i, " is ", logits[i], ", want a number");
  }
  const auto best = std::max_element(logits.begin(), logits.end());
  LINNET_CHECK(best != logits.end() && *best > -kInfinity, op, ": none of ", logits.size(),
               " logits is above -infinity");
  return static_cast<size_t>(best - logits.begin());
}

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

/// Sets the weight of each class to 0 that top_k or top_p leaves out. Of equal logits the first counts as larger.
void Sampler::cut(std::span<const double> logits) {
  const bool cut_k = options_.top_k > 0 && options_.top_k < static_cast<int64_t>(logits.size());
  if (!cut_k && options_.top_p == 1) return;
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  const auto larger = [&](size_t a, size_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); };
  auto end = order_.end();
  if (cut_k) {
    end = order_.begin() + options_.top_k;
    std::nth_element(order_.begin(), end, order_.end(), larger);
    std::for_each(end, order_.end(), [&](size_t i) { weights_[i] = 0; });
  }
  if (options_.top_p == 1) return;
  double total = 0, sum = 0;
  std::for_each(order_.begin(), end, [&](size_t i) { total += weights_[i]; });
  const auto smaller = [&](size_t a, size_t b) { return larger(b, a); };
  std::make_heap(order_.begin(), end, smaller);  // only as much is sorted as is kept
  while (end != order_.begin() && sum < options_.top_p * total) {
    std::pop_heap(order_.begin(), end, smaller);
    sum += weights_[*--end];
  }
  std::for_each(order_.begin(), end, [&](size_t i) { weights_[i] = 0; });
}

int64_t Sampler::operator()(std::span<const double> logits, Generator& generator) {
  const size_t best = largest_logit("sample_logits", logits);
  if (options_.temperature == 0) return static_cast<int64_t>(best);
  weights_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) weights_[i] = std::exp((logits[i] - logits[best]) / options_.temperature);
  cut(logits);
  return sample_weights(weights_, generator);
}

RowSampler::RowSampler(const SamplingOptions& options, const Generator& generator, int64_t batch, int64_t classes)
    : sample_(options), row_(static_cast<size_t>(classes)) {
  for (int64_t b = 0; b < batch; ++b) generators_.push_back(row_generator(generator, b));
}

void RowSampler::operator()(const Tensor& logits, Tensor& tokens) {
  const int64_t classes = static_cast<int64_t>(row_.size());
  const Shape shape{static_cast<int64_t>(generators_.size()), classes};
  LINNET_CHECK(logits.shape() == shape && tokens.shape() == shape.first(1), "sample_logits: logits ", logits.shape(),
               " and tokens ", tokens.shape(), " given, ", shape, " and ", shape.first(1), " wanted");
  const auto uniform = [&](size_t b) { return generators_[b].uniform(); };
  if (const Tensor chosen = chosen_on_cuda(logits, sample_.options(), uniform); chosen.defined())
    return tokens.copy_from(chosen);
  const Tensor host = logits.to(Device::cpu);
  int32_t* token = tokens.mutable_data<int32_t>();
  for (size_t b = 0; b < generators_.size(); ++b) {
    with_float("sample_logits", logits.dtype(), [&]<class T>() {
      const T* row = host.data<T>() + static_cast<int64_t>(b) * classes;
      std::copy(row, row + classes, row_.begin());
    });
    token[b] = static_cast<int32_t>(sample_(row_, generators_[b]));
  }
}

int64_t sample_logits(std::span<const double> logits, const SamplingOptions& options, Generator& generator) {
  return Sampler(options)(logits, generator);
}

Tensor sample_logits(const Tensor& logits, const SamplingOptions& options, Generator& generator) {
  LINNET_CHECK(logits.defined(), "sample_logits: the logits are undefined");
  LINNET_CHECK(logits.rank() == 2, "sample_logits: logits ", logits.shape(), " are not (batch, classes)");
  if (!is_float(logits.dtype())) fail_not_float("sample_logits", logits.dtype());
  Sampler sample(options);
  Generator drawn = generator;
  if (const Tensor chosen = chosen_on_cuda(logits, options, [&](size_t) { return drawn.uniform(); });
      chosen.defined()) {
    generator = drawn;
    return chosen.to(logits.device());
  }
  drawn = generator;
  const std::vector<double> values = logits.to(Device::cpu).to(Dtype::f64).to_vector<double>();
  const auto classes = static_cast<size_t>(logits.size(1));
  std::vector<int32_t> chosen;
  for (size_t b = 0; b < static_cast<size_t>(logits.size(0)); ++b) {
    const auto row = std::span(values).subspan(b * classes, classes);
    chosen.push_back(static_cast<int32_t>(sample(row, drawn)));
  }
  generator = drawn;  // last: a call that fails takes none
  return Tensor::from(chosen, {logits.size(0)}, logits.device());
}

}  // namespace linnet::models
