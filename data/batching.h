// Batches: which items of a data set stand together, epoch by epoch, and sequences padded to one tensor.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet::data {

/// The batches of one epoch, each a list of item numbers.
using Batches = std::vector<std::vector<int64_t>>;
/// The batches of any epoch: a function of its number alone, so that an interrupted run can go on with the same.
using Plan = std::function<Batches(uint64_t epoch)>;

struct PlanOptions {
  int64_t batch = 1;       ///< items a batch; the last of an epoch may have fewer
  bool drop_last = false;  ///< leave out a last batch that has fewer
  bool shuffle = true;     ///< in an order that is a function of (seed, epoch)
  uint64_t seed = 0;
};
/// The items 0 .. items-1, in batches of one size.
Plan plan(int64_t items, const PlanOptions& options = {});

struct LengthPlanOptions {
  int64_t max_tokens = 0;  ///< a batch, padding included: items times the longest; 0: any number
  int64_t max_items = 0;   ///< a batch; 0: any number
  int64_t pool = 8192;     ///< items sorted by length together: more of them need less padding but mix less
  bool shuffle = true;     ///< both the items, before they are pooled, and the batches
  uint64_t seed = 0;
};
/// Batches of items of like length, each item once an epoch. Of pairs, such as a sentence and its translation, give the
/// larger length. Throws where a length is negative or alone exceeds max_tokens.
Plan plan_by_length(std::vector<int64_t> lengths, const LengthPlanOptions& options);

/// Sequences side by side.
struct Padded {
  Tensor tokens;                 ///< i32 (batch, time): time is the longest, what is beyond a length is padding
  std::vector<int32_t> lengths;  ///< batch numbers, as KeyMask::lengths takes them
};
Padded pad(const std::vector<std::vector<int32_t>>& sequences, int32_t padding = 0);

}  // namespace linnet::data
