// The data of both tasks: sequences `0 w 0 w` with w random over 1 .. symbols and of random length, whole or masked.
#pragma once
#include <string>
#include <vector>

#include "linnet/core/random.h"
#include "linnet/core/tensor.h"
#include "support/predictions.h"

namespace copy_task {

inline constexpr int32_t kSeparator = 0;

struct TaskSize {
  int64_t length, symbols;

  int64_t shortest() const { return length / 4 > 1 ? length / 4 : 1; }  ///< of w
  int64_t longest() const { return (length - 2) / 2; }
  int32_t padding() const { return static_cast<int32_t>(symbols + 1); }
  int32_t mask() const { return static_cast<int32_t>(symbols + 2); }
  /// How many of n symbols each half hides: a fifth, rounded down, but at least one.
  static int64_t hidden(int64_t n) { return n / 5 > 1 ? n / 5 : 1; }
};

/// Next-token prediction: inputs are the sequence without its last token, targets the one without its first. Targets
/// outside the second w, and padding, are kIgnored.
struct Batch {
  linnet::Tensor inputs, targets;  ///< i32 (batch, length - 1); where masked (batch, length)
  int64_t counted;                 ///< targets that are not ignored
  std::vector<int32_t> lengths{};  ///< where masked: how long each sequence is before its padding
};

/// Streams that share no number: the training data of a step, the fresh sequences of an evaluation, the demonstration.
enum class Stream { training, evaluation, demonstration };

/// A function of its arguments alone: the batch of step `index` is the same whether or not the run was interrupted.
Batch make_batch(const TaskSize& size, int64_t batch, uint64_t seed, Stream stream, uint64_t index);

/// The masked copy task, after Vyas et al. 2020: the sequence itself with hidden(n) symbols of each w replaced by the
/// mask, never the same one in both; the targets are the hidden symbols, where they are hidden. Also a function of its
/// arguments alone.
Batch make_masked_batch(const TaskSize& size, int64_t batch, uint64_t seed, Stream stream, uint64_t index);

/// A random w of random length, uniform in shortest() .. longest().
std::vector<int32_t> random_string(const TaskSize& size, linnet::Generator& generator);
linnet::Generator generator_of(uint64_t seed, Stream stream, uint64_t index);

/// "3 1 4" as numbers; throws Error where one is not in 1 .. symbols, or there are none or more than longest().
std::vector<int32_t> parse_string(const std::string& text, const TaskSize& size);

}  // namespace copy_task
