#include "linnet/data/loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "support/arrays.h"

using namespace linnet;
using namespace linnet::data;
using linnet::test::message_of;
using Numbers = std::vector<int64_t>;

namespace {

int64_t itself(int64_t item) { return item; }

/// The batches of the rest of `epochs` epochs.
Batches rest(DataLoader<int64_t>& loader, uint64_t epochs) {
  Batches seen;
  while (loader.epoch() < epochs)
    for (const Numbers& batch : loader) seen.push_back(batch);
  return seen;
}

}  // namespace

TEST_CASE("a loader gives its plan's batches, with and without a thread") {
  const Plan p = plan(23, {.batch = 4, .seed = 7});
  for (int64_t ahead : {0, 1, 2, 100}) {
    DataLoader<int64_t> loader(p, itself, {.ahead = ahead});
    for (uint64_t epoch = 0; epoch < 3; ++epoch) {
      Batches seen;
      for (const Numbers& batch : loader) {
        seen.push_back(batch);
        CHECK(loader.epoch() == epoch);
        CHECK(loader.batch() == static_cast<int64_t>(seen.size()));
      }
      CHECK(seen == p(epoch));
      CHECK(loader.epoch() == epoch + 1);
      CHECK(loader.batch() == 0);
    }
  }
  DataLoader<int64_t> empty(plan(0), itself);
  for (const Numbers& batch : empty) FAIL("a batch of ", batch.size(), " items of no data set");
  CHECK(empty.epoch() == 1);
}

TEST_CASE("DA1, DA3: as many batches as the plan has, each item once, however far the thread works ahead") {
  for (int64_t ahead = 0; ahead < 5; ++ahead) {
    CAPTURE(ahead);
    const auto epoch = [&](int64_t items, const PlanOptions& options) {
      DataLoader<int64_t> loader(plan(items, options), itself, {.ahead = ahead});
      return rest(loader, 1);
    };
    CHECK(epoch(10, {.batch = 4, .drop_last = true}).size() == 2);
    CHECK(epoch(3, {.batch = 4, .drop_last = true}).empty());
    const Batches all = epoch(10, {.batch = 3});
    CHECK(all.size() == 4);
    Numbers seen;
    for (const Numbers& batch : all) seen.insert(seen.end(), batch.begin(), batch.end());
    std::sort(seen.begin(), seen.end());
    CHECK(seen == Numbers{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  }
}

TEST_CASE("a collating loader makes its batches of the items; a batch may be moved from") {
  DataLoader<std::unique_ptr<int64_t>, std::unique_ptr<int64_t>> loader(
      plan(5, {.batch = 2, .shuffle = false}), [](int64_t i) { return std::make_unique<int64_t>(i); },
      [](std::vector<std::unique_ptr<int64_t>> items) {
        int64_t sum = 0;
        for (const auto& item : items) sum += *item;
        return std::make_unique<int64_t>(sum);
      });
  Numbers sums;
  for (auto& batch : loader) sums.push_back(*std::move(batch));
  CHECK(sums == Numbers{1, 5, 4});
}

TEST_CASE("a loader resumed from a saved position sees the very batches that follow") {
  const Plan p = plan(23, {.batch = 4, .seed = 7});
  DataLoader<int64_t> whole(p, itself);
  const Batches all = rest(whole, 3);
  REQUIRE(all.size() == 18);
  for (size_t stop = 1; stop <= all.size(); ++stop) {
    DataLoader<int64_t> first(p, itself), second(p, itself);
    size_t seen = 0;
    StateDict state;
    while (seen < stop)
      for (const Numbers& batch : first) {
        CHECK(batch == all[seen]);
        if (++seen == stop) {
          state = first.state_dict();  // where a program saves: at the end of a step
          break;
        }
      }
    second.load_state_dict(state);
    CHECK(rest(second, 3) == Batches(all.begin() + static_cast<std::ptrdiff_t>(stop), all.end()));
    CHECK(rest(first, 3) == Batches(all.begin() + static_cast<std::ptrdiff_t>(stop), all.end()));
  }
}

TEST_CASE("a position of another plan is refused, and changes nothing") {
  DataLoader<int64_t> loader(plan(23, {.batch = 4, .seed = 7}), itself);
  for (const Numbers& batch : loader)
    if (batch.size() == 4) break;
  const StateDict state = loader.state_dict();
  for (const Plan& other : {plan(23, {.batch = 4, .seed = 8}), plan(22, {.batch = 4, .seed = 7}),
                            plan(23, {.batch = 5, .seed = 7}), plan(23, {.batch = 4, .shuffle = false})}) {
    DataLoader<int64_t> wrong(other, itself);
    CHECK(message_of([&] { wrong.load_state_dict(state); }) ==
          "data_loader: epoch 0 was saved with other batches: another data set, seed or batch size");
    CHECK(wrong.batch() == 0);
  }
  StateDict far;
  far.set_integer("epoch", 2);
  far.set_integer("batch", 7);
  CHECK(message_of([&] { loader.load_state_dict(far); }) == "data_loader: batch 7 of epoch 2 saved, which has 6");
  CHECK_THROWS_AS(loader.load_state_dict({}), Error);
  CHECK(loader.epoch() == 0);
  CHECK(loader.batch() == 1);
}

TEST_CASE("what an item throws comes out of the loop in its turn, with the item's number (DA4)") {
  for (int64_t ahead : {0, 2, 50}) {
    bool broken = true;
    DataLoader<int64_t> loader(plan(20, {.batch = 2, .shuffle = false}),
                               [&](int64_t i) {
                                 if (i == 7 && broken) throw std::runtime_error("the file is gone");
                                 if (i == 13) throw 3;
                                 return i;
                               },
                               {.ahead = ahead});
    int64_t batches = 0;
    CHECK(message_of([&] {
            for (const Numbers& batch : loader) batches += !batch.empty();
          }) == "data_loader: item 7: the file is gone");
    CHECK(batches == 3);
    broken = false;  // the loop can be taken up again
    CHECK(message_of([&] {
            for (const Numbers& batch : loader) batches += !batch.empty();
          }) == "data_loader: item 13: an exception that is no std::exception");
    CHECK(batches == 6);
  }
}

TEST_CASE("a loop left early stops its thread and frees what it had ready") {
  auto alive = std::make_shared<int>(0);
  for (int64_t ahead : {0, 1, 3, 1000})
    for (int stop = 1; stop < 5; ++stop) {
      std::atomic<bool> ended = false;
      DataLoader<std::shared_ptr<int>> loader(plan(1000, {.batch = 1}),
                                              [&](int64_t) {
                                                CHECK_FALSE(ended);
                                                return alive;
                                              },
                                              {.ahead = ahead});
      int seen = 0;
      for (const auto& batch : loader)
        if ((seen += static_cast<int>(batch.size())) == stop) break;
      ended = true;
      CHECK(alive.use_count() == 1);
      CHECK(loader.batch() == stop);
    }
}

TEST_CASE("the thread works ahead, and no further than it may") {
  std::atomic<int> made = 0;
  DataLoader<int> loader(plan(100, {.batch = 1}), [&](int64_t) { return ++made; }, {.ahead = 3});
  int taken = 0;
  for (const auto& batch : loader) {
    ++taken;
    while (taken == 1 && made < 4) std::this_thread::yield();  // never ends where nothing is made ahead
    CHECK(made <= taken + 4);                                  // three ready and one in the making
    CHECK(batch.size() == 1);
  }
  CHECK(made == 100);
}

TEST_CASE("a loader says what is missing") {
  CHECK(message_of([] { DataLoader<int64_t>(Plan(), itself); }) == "data_loader: no plan given");
  CHECK(message_of([] { DataLoader<int64_t>(plan(1), nullptr); }) == "data_loader: a function is empty");
  CHECK(message_of([] { DataLoader<int64_t>(plan(1), itself, {.ahead = -1}); }) ==
        "data_loader: -1 batches ahead given, wanted: at least 0");
}
