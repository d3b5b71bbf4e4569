#include "linnet/data/batching.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "linnet/core/error.h"
#include "linnet/core/random.h"

namespace linnet::data {

namespace {

template <class T>
void shuffle(std::vector<T>& list, Generator& generator) {
  for (size_t i = list.size(); i > 1; --i)  // Fisher-Yates
    std::swap(list[i - 1], list[static_cast<size_t>(generator.below(static_cast<int64_t>(i)))]);
}

/// 2^32 words of one stream for each epoch: no two share a number.
Generator generator_of(uint64_t seed, uint64_t epoch) { return {seed, stream_of("data.plan"), epoch << 32}; }

std::vector<int64_t> numbers(int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t(0));
  return order;
}

}  // namespace

Plan plan(int64_t items, const PlanOptions& options) {
  LINNET_CHECK(items >= 0 && options.batch >= 1, "plan: ", items, " items in batches of ", options.batch,
               ", wanted: 0 or more in batches of at least 1");
  return [items, options](uint64_t epoch) {
    std::vector<int64_t> order = numbers(items);
    Generator generator = generator_of(options.seed, epoch);
    if (options.shuffle) shuffle(order, generator);
    Batches batches;
    for (int64_t begin = 0; begin < items;) {
      const int64_t count = std::min(options.batch, items - begin);
      if (count < options.batch && options.drop_last) break;
      batches.emplace_back(order.begin() + begin, order.begin() + begin + count);
      begin += count;
    }
    return batches;
  };
}

Plan plan_by_length(std::vector<int64_t> lengths, const LengthPlanOptions& options) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  LINNET_CHECK(options.max_tokens >= 0 && options.max_items >= 0 && options.pool >= 1, "plan_by_length: max_tokens ",
               options.max_tokens, ", max_items ", options.max_items, " and pool ", options.pool,
               " given, wanted: at least 0, 0 and 1");
  LINNET_CHECK(options.max_tokens > 0 || options.max_items > 0,
               "plan_by_length: neither max_tokens nor max_items given, one of them wanted");
  const int64_t tokens = options.max_tokens > 0 ? options.max_tokens : kAny;
  const int64_t items = options.max_items > 0 ? options.max_items : kAny;
  for (size_t i = 0; i < lengths.size(); ++i)
    LINNET_CHECK(lengths[i] >= 0 && lengths[i] <= tokens, "plan_by_length: item ", i, " has length ", lengths[i],
                 ", 0 to max_tokens ", tokens, " wanted");
  return [lengths = std::move(lengths), options, tokens, items](uint64_t epoch) {
    const auto length = [&](int64_t item) { return lengths[static_cast<size_t>(item)]; };
    std::vector<int64_t> order = numbers(static_cast<int64_t>(lengths.size()));
    Generator generator = generator_of(options.seed, epoch);
    if (options.shuffle) shuffle(order, generator);
    Batches batches;
    for (auto pool = order.begin(); pool != order.end();) {
      const auto end = pool + std::min<int64_t>(options.pool, order.end() - pool);
      std::stable_sort(pool, end, [&](int64_t a, int64_t b) { return length(a) < length(b); });
      for (std::vector<int64_t>* batch = nullptr; pool != end; ++pool) {
        // Lengths rise: this item is the longest so far.
        const int64_t room = std::min(items, tokens / std::max<int64_t>(length(*pool), 1));
        if (!batch || static_cast<int64_t>(batch->size()) >= room) batch = &batches.emplace_back();
        batch->push_back(*pool);
      }
    }
    if (options.shuffle) shuffle(batches, generator);
    return batches;
  };
}

Padded pad(const std::vector<std::vector<int32_t>>& sequences, int32_t padding) {
  size_t time = 0;
  for (const auto& sequence : sequences) time = std::max(time, sequence.size());
  LINNET_CHECK(time <= static_cast<size_t>(std::numeric_limits<int32_t>::max()), "pad: a sequence of ", time,
               " tokens, at most 2^31-1 wanted");
  Padded result;
  result.tokens = Tensor::full({static_cast<int64_t>(sequences.size()), static_cast<int64_t>(time)}, padding,
                               Dtype::i32, Device::cpu);
  int32_t* row = result.tokens.mutable_data<int32_t>();
  for (const auto& sequence : sequences) {
    std::copy(sequence.begin(), sequence.end(), row);
    row += time;
    result.lengths.push_back(static_cast<int32_t>(sequence.size()));
  }
  return result;
}

}  // namespace linnet::data
