// DataLoader: the batches of a data set, made by a thread of its own while the program works on the one before, from a
// position that can be saved.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "linnet/core/error.h"
#include "linnet/core/state_dict.h"
#include "linnet/data/batching.h"

namespace linnet::data {

/// Where a loader stands in its plan.
class Position {
 public:
  explicit Position(Plan plan);

  uint64_t epoch() const { return epoch_; }
  int64_t batch() const { return batch_; }                                     ///< batches of this epoch given out
  int64_t batches() const { return static_cast<int64_t>(of_epoch_->size()); }  ///< in this epoch

  /// Epoch and batch, and a sum over the epoch's item numbers: loading throws, and changes nothing, where this plan's
  /// epoch is another, so that the batches that follow are the very ones that an uninterrupted run would see.
  StateDict state_dict() const;
  void load_state_dict(const StateDict& state);

 protected:
  void advance() { ++batch_; }
  void end_epoch();
  std::shared_ptr<const Batches> of_epoch() const { return of_epoch_; }

 private:
  std::shared_ptr<const Batches> batches_of(uint64_t epoch) const;

  Plan plan_;
  uint64_t epoch_ = 0;
  int64_t batch_ = 0;
  std::shared_ptr<const Batches> of_epoch_;
};

struct LoaderOptions {
  int64_t ahead = 2;  ///< batches that the thread makes in advance; 0: no thread, each is made when it is asked for
};

/// Throws the exception being handled again as an Error that begins with the item's number.
[[noreturn]] void fail_for_item(int64_t item);

/// A data set is a function from 0 .. items-1 to an Item; a plan (data/batching.h) says which items stand together:
///     DataLoader<Sample> loader(plan(60000, {.batch = 32, .seed = 1}), [&](int64_t i) { return read(i); });
///     while (loader.epoch() < 10) {
///       for (std::vector<Sample>& batch : loader) step(batch);  // the rest of this epoch
///       save_checkpoint(path, {{"data", loader.state_dict()}, ...});
///     }
/// `collate`, where given, makes the Batch of the items, in the same thread.
///
/// A loop left early goes on with the batch after the last that it was given. What the two functions throw comes out of
/// the loop, when its batch's turn is, as an Error that names the item. With a thread they run in it, one call at a
/// time: they must not draw from default_generator() (make a Generator of the item's number instead), and what they
/// read must not change during a loop. One loop over a loader at a time.
template <class Item, class Batch = std::vector<Item>>
class DataLoader : public Position {
 public:
  using MakeItem = std::function<Item(int64_t)>;
  using Collate = std::function<Batch(std::vector<Item>)>;
  class Iterator;

  DataLoader(Plan plan, MakeItem item,
             const LoaderOptions& options = {}) requires std::is_same_v<Batch, std::vector<Item>>
      : DataLoader(
            std::move(plan), std::move(item), [](std::vector<Item> items) { return items; }, options) {}
  DataLoader(Plan plan, MakeItem item, Collate collate, const LoaderOptions& options = {})
      : Position(std::move(plan)), item_(std::move(item)), collate_(std::move(collate)), options_(options) {
    LINNET_CHECK(item_ && collate_, "data_loader: a function is empty");
    LINNET_CHECK(options.ahead >= 0, "data_loader: ", options.ahead, " batches ahead given, wanted: at least 0");
  }
  DataLoader(const DataLoader&) = delete;  // a running loop holds on to it
  DataLoader& operator=(const DataLoader&) = delete;

  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  class Ahead;

  Batch make(const std::vector<int64_t>& numbers) const {
    std::vector<Item> items;
    items.reserve(numbers.size());
    for (int64_t number : numbers) try {
        items.push_back(item_(number));
      } catch (...) {
        fail_for_item(number);
      }
    return collate_(std::move(items));
  }

  MakeItem item_;
  Collate collate_;
  LoaderOptions options_;
};

/// The thread, and the batches that it has ready. Its destructor waits for the call in progress, no longer.
template <class Item, class Batch>
class DataLoader<Item, Batch>::Ahead {
 public:
  explicit Ahead(const DataLoader& loader)
      : loader_(loader), batches_(loader.of_epoch()), thread_([this, next = loader.batch()] { run(next); }) {}
  ~Ahead() {
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Batch take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || fault_; });
    if (ready_.empty()) std::rethrow_exception(fault_);
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return batch;
  }

 private:
  void run(int64_t next) {
    std::exception_ptr fault;
    try {
      for (; next < static_cast<int64_t>(batches_->size()); ++next) {
        {
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return stopped_ || static_cast<int64_t>(ready_.size()) < loader_.options_.ahead; });
          if (stopped_) return;
        }
        Batch batch = loader_.make((*batches_)[static_cast<size_t>(next)]);
        {
          std::lock_guard lock(mutex_);
          ready_.push_back(std::move(batch));
        }
        changed_.notify_all();
      }
    } catch (...) {
      fault = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    fault_ = std::move(fault);
    changed_.notify_all();
  }

  const DataLoader& loader_;
  std::shared_ptr<const Batches> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> ready_;
  std::exception_ptr fault_;
  bool stopped_ = false;
  std::thread thread_;  // the last member: it starts when all others are there
};

/// One loop: from the loader's position to the end of its epoch.
template <class Item, class Batch>
class DataLoader<Item, Batch>::Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = Batch;

  explicit Iterator(DataLoader& loader) : loader_(&loader) {
    if (loader.options_.ahead > 0 && loader.batch() < loader.batches()) ahead_ = std::make_unique<Ahead>(loader);
    next();
  }
  Batch& operator*() const { return *batch_; }
  Iterator& operator++() {
    next();
    return *this;
  }
  void operator++(int) { next(); }
  bool operator==(std::default_sentinel_t) const { return !batch_; }

 private:
  void next() {
    batch_.reset();
    if (loader_->batch() == loader_->batches()) {
      ahead_.reset();
      return loader_->end_epoch();
    }
    batch_ = ahead_ ? ahead_->take() : loader_->make((*loader_->of_epoch())[static_cast<size_t>(loader_->batch())]);
    loader_->advance();
  }

  DataLoader* loader_;
  std::unique_ptr<Ahead> ahead_;
  mutable std::optional<Batch> batch_;
};

}  // namespace linnet::data
