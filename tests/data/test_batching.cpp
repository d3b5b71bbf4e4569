#include "linnet/data/batching.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "linnet/core/error.h"
#include "linnet/core/random.h"

using namespace linnet;
using namespace linnet::data;
using Numbers = std::vector<int64_t>;

namespace {

Numbers flat(const Batches& batches) {
  Numbers all;
  for (const Numbers& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

bool each_once(const Batches& batches, int64_t items) {
  Numbers all = flat(batches), wanted(static_cast<size_t>(items));
  std::sort(all.begin(), all.end());
  std::iota(wanted.begin(), wanted.end(), int64_t(0));
  return all == wanted;
}

}  // namespace

TEST_CASE("a plan has each item once an epoch, in an order of (seed, epoch)") {
  const Plan p = plan(103, {.batch = 10, .seed = 1});
  CHECK(p(0).size() == 11);
  CHECK(p(0).back().size() == 3);
  for (uint64_t epoch : {uint64_t(0), uint64_t(1), uint64_t(77), uint64_t(1) << 40}) CHECK(each_once(p(epoch), 103));
  CHECK(p(3) == plan(103, {.batch = 10, .seed = 1})(3));
  CHECK(p(0) != p(1));
  CHECK(p(0) != plan(103, {.batch = 10, .seed = 2})(0));
  CHECK(plan(5, {.batch = 2, .shuffle = false})(4) == Batches{{0, 1}, {2, 3}, {4}});
  CHECK(plan(5, {.batch = 2, .drop_last = true, .shuffle = false})(0) == Batches{{0, 1}, {2, 3}});
  CHECK(plan(4, {.batch = 2, .drop_last = true})(0).size() == 2);
  CHECK(plan(3, {.batch = 9, .drop_last = true})(0).empty());
  CHECK(plan(0, {.batch = 9})(0).empty());
  CHECK_THROWS_WITH_AS(plan(5, {.batch = 0}),
                       "plan: 5 items in batches of 0, wanted: 0 or more in batches of at least 1", Error);
  CHECK_THROWS_AS(plan(-1), Error);
}

TEST_CASE("each order of three items comes up as often") {
  std::vector<int> times(64);
  for (uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const Numbers order = plan(3, {.batch = 3})(epoch)[0];
    ++times[static_cast<size_t>(order[0] * 16 + order[1] * 4 + order[2])];
  }
  for (int n : times) CHECK((n == 0 || (n > 850 && n < 1150)));
  CHECK(std::count(times.begin(), times.end(), 0) == 64 - 6);
}

TEST_CASE("a plan by length keeps to its limits and needs little padding") {
  Generator generator{5, 0, 0};
  Numbers lengths(3001);
  for (int64_t& n : lengths) n = generator.below(60);
  const auto longest = [&](const Numbers& batch) {
    int64_t most = 0;
    for (int64_t i : batch) most = std::max(most, lengths[static_cast<size_t>(i)]);
    return most;
  };
  for (int64_t pool : {1, 100, 1000, 8192}) {
    const Plan p = plan_by_length(lengths, {.max_tokens = 512, .max_items = 40, .pool = pool, .seed = 3});
    for (uint64_t epoch : {0, 1, 9}) {
      const Batches batches = p(epoch);
      CHECK(each_once(batches, 3001));
      int64_t padded = 0;
      for (const Numbers& batch : batches) {
        CHECK(batch.size() <= 40);
        CHECK(longest(batch) * static_cast<int64_t>(batch.size()) <= 512);
        padded += longest(batch) * static_cast<int64_t>(batch.size());
      }
      const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
      if (pool == 8192) CHECK(padded < 1.02 * static_cast<double>(tokens));
      CHECK(padded >= tokens);
    }
    CHECK(p(2) == p(2));
    CHECK(p(2) != p(3));
  }
  // Not sorted by length over the epoch.
  const Batches batches = plan_by_length(lengths, {.max_items = 10, .seed = 3})(0);
  CHECK_FALSE(std::is_sorted(batches.begin(), batches.end(),
                             [&](const Numbers& a, const Numbers& b) { return longest(a) < longest(b); }));
  CHECK(plan_by_length({3, 1, 2}, {.max_items = 2, .shuffle = false})(0) == Batches{{1, 2}, {0}});
  CHECK(plan_by_length({2, 2, 4}, {.max_tokens = 4, .shuffle = false})(0) == Batches{{0, 1}, {2}});
  CHECK(plan_by_length({}, {.max_items = 2})(0).empty());
}

TEST_CASE("a plan by length says what it cannot do") {
  CHECK_THROWS_WITH_AS(plan_by_length({4, 9}, {.max_tokens = 8}),
                       "plan_by_length: item 1 has length 9, 0 to max_tokens 8 wanted", Error);
  CHECK_THROWS_AS(plan_by_length({-1}, {.max_items = 8}), Error);
  CHECK_THROWS_WITH_AS(plan_by_length({1}, {}),
                       "plan_by_length: neither max_tokens nor max_items given, one of them wanted", Error);
  CHECK_THROWS_AS(plan_by_length({1}, {.max_items = 1, .pool = 0}), Error);
  CHECK_THROWS_AS(plan_by_length({1}, {.max_items = -1}), Error);
}

TEST_CASE("padding: to the longest, with lengths") {
  const Padded three = pad({{5, 6}, {}, {7, 8, 9}}, -1);
  CHECK(three.tokens.shape() == Shape{3, 3});
  CHECK(three.tokens.to_vector<int32_t>() == std::vector<int32_t>{5, 6, -1, -1, -1, -1, 7, 8, 9});
  CHECK(three.lengths == std::vector<int32_t>{2, 0, 3});
  CHECK(pad({}).tokens.shape() == Shape{0, 0});
  CHECK(pad({{}, {}}).tokens.shape() == Shape{2, 0});
}
