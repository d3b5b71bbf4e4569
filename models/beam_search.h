// Beam search: the most likely sequences that a model of the next token gives, a few at a time.
#pragma once
#include <functional>
#include <vector>

#include "linnet/core/tensor.h"
#include "linnet/nn/required.h"

namespace linnet::models {

struct BeamOptions {
  nn::Required<int32_t> start;   ///< stands before every sequence, and not in the result
  nn::Required<int32_t> end;     ///< ends a sequence
  nn::Required<int64_t> tokens;  ///< at most so many, the end counted
  int64_t beams = 4;
  double alpha = 0.6;  ///< of the length penalty; 0 means none
};

struct Hypothesis {
  std::vector<int32_t> tokens;  ///< the end too, where it is finished
  double log_probability = 0;   ///< ln p(tokens)
  double score = 0;             ///< log_probability / length_penalty
  bool finished = false;        ///< false where it was cut off after options.tokens
};

/// ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14).
double length_penalty(int64_t length, double alpha);

/// Throws, naming `op`, unless there is at least one beam, tokens is not negative, and alpha is finite and not
/// negative.
void check_beams(const char* op, const BeamOptions& options);

/// Logits, (rows, vocab), of the token after `tokens`, i32 (rows) on the CPU: row i continues row parents[i] of the
/// call before. In the first call the rows are the samples.
using NextLogits = std::function<Tensor(const Tensor& parents, const Tensor& tokens)>;

/// For each sample the `beams` sequences of highest score that were found, best first; those that are finished stand
/// before those that are not, which only fill up. In each step the continuations of a sample's beams are put in order
/// of their probability, the first of equals first: an end among the first `beams` finishes its sequence, and the first
/// `beams` others are the next beams. A sample is done when no beam can come to a better score than `beams` finished
/// ones. With as many beams as there are sequences this is exhaustive; with one and alpha 0 it is greedy. Errors:
/// logits that are NaN or +infinity.
std::vector<std::vector<Hypothesis>> beam_search(int64_t batch, const BeamOptions& options, const NextLogits& next);

}  // namespace linnet::models
