// Minibatches: runs over rows of tensors in a shuffled order, a few at a time.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/core/random.h"

namespace example {

/// The rows 0 .. rows-1 in a random order, cut into index tensors of `size` rows (the last may be shorter):
/// `for (const Tensor& index : minibatches(100, 10, generator)) { x = take_rows(all_x, index); ... }`
inline std::vector<linnet::Tensor> minibatches(int64_t rows, int64_t size, linnet::Generator& generator) {
  LINNET_CHECK(rows >= 1 && size >= 1, "minibatches: ", rows, " rows in batches of ", size,
               ", both must be at least 1");
  std::vector<int32_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = rows - 1; i > 0; --i) {  // Fisher-Yates
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(generator.below(i + 1))]);
  }
  std::vector<linnet::Tensor> batches;
  for (int64_t begin = 0; begin < rows; begin += size) {
    const int64_t count = std::min(size, rows - begin);
    batches.push_back(
        linnet::Tensor::from(std::span<const int32_t>(order.data() + begin, static_cast<size_t>(count)), {count}));
  }
  return batches;
}

/// Rows index[i] of x (rows, ...), copied.
inline linnet::Tensor take_rows(const linnet::Tensor& x, const linnet::Tensor& index) {
  return linnet::compute::gather_rows("take_rows", x, index);
}

}  // namespace example
