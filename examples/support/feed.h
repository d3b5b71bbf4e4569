// Feed: the batches of a DataLoader one by one, over the epochs.
#pragma once
#include <optional>
#include <utility>

namespace example {

/// The loader's position never runs ahead of the batch given last: at the end of an epoch it still stands there.
template <class Loader>
class Feed {
 public:
  explicit Feed(Loader& loader) : loader_(loader) {}

  auto& next() {
    if (!loop_) {
      loop_.emplace(loader_.begin());
    } else {
      ++*loop_;
    }
    if (*loop_ == loader_.end()) loop_.emplace(loader_.begin());
    return **loop_;
  }
  /// The batch given last was the last of its epoch.
  bool ends_epoch() const { return loader_.batch() == loader_.batches(); }
  /// Epochs that are whole.
  int64_t epochs() const { return static_cast<int64_t>(loader_.epoch()) + (ends_epoch() ? 1 : 0); }

 private:
  Loader& loader_;
  std::optional<typename Loader::Iterator> loop_;
};

}  // namespace example
