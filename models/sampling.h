// Sampling: choosing a class at random, by weights or by logits.
#pragma once
#include <span>
#include <vector>

#include "linnet/core/random.h"

namespace linnet::models {

struct SamplingOptions {
  double temperature = 1;  ///< logits are divided by it; 0 is greedy: the largest logit, the first of equals
  int64_t top_k = 0;       ///< only the k largest logits; 0 means all
  double top_p = 1;  ///< then only the most likely classes, as few as have this probability together; at least one
};

/// Throws, naming `op`, unless temperature is finite and not negative, top_k not negative, and top_p in (0, 1].
void check_sampling(const char* op, const SamplingOptions& options);

/// The class i that u in [0, 1) falls on, with probability weights[i] / total: the first whose cumulative sum is above
/// u * total, else the last with a weight above 0. A class of weight 0 is never chosen. Throws where a weight is
/// negative, infinite or NaN, or all are 0, and where u is no such number.
int64_t sample_weights(std::span<const double> weights, double u);
/// The same with a number from the generator.
int64_t sample_weights(std::span<const double> weights, Generator& generator);

/// Throws, naming `op`, where a logit is NaN or +infinity, or none is above -infinity; else the place of the largest.
size_t largest_logit(const char* op, std::span<const double> logits);

/// Draws classes from rows of logits; keeps the memory that it needs from one draw to the next.
class Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) { check_sampling("sample_logits", options); }
  /// As sample_logits.
  int64_t operator()(std::span<const double> logits, Generator& generator);
  const SamplingOptions& options() const { return options_; }

 private:
  void cut(std::span<const double> logits);

  SamplingOptions options_;
  std::vector<double> weights_;
  std::vector<size_t> order_;
};

/// Draws the next token of every row of a batch, each from a sequence of words of its own: what a row becomes depends
/// on the generator and its place, not on the other rows. Allocates nothing after the first draw (on a GPU, which draws
/// where the logits lie: nothing that grows).
class RowSampler {
 public:
  RowSampler(const SamplingOptions& options, const Generator& generator, int64_t batch, int64_t classes);
  /// logits (batch, classes) -> tokens, i32 (batch) of the CPU, as they lie. Throws as sample_logits does.
  void operator()(const Tensor& logits, Tensor& tokens);

 private:
  Sampler sample_;
  std::vector<Generator> generators_;
  std::vector<double> row_;
};

/// A class by softmax(logits / temperature), cut by top_k and then top_p. Throws where a logit is NaN or +infinity, or
/// all are -infinity.
int64_t sample_logits(std::span<const double> logits, const SamplingOptions& options, Generator& generator);
/// One class a row: logits (batch, classes) -> i32 (batch).
Tensor sample_logits(const Tensor& logits, const SamplingOptions& options, Generator& generator);

}  // namespace linnet::models
