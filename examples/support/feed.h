// Feed: the batches of a DataLoader one by one, over the epochs.
#pragma once
#include <cstdint>
#include <memory>

namespace example {

/// The loader's position never runs ahead of the batch given last: at the end of an epoch it still stands there.
template <class Loader>
class Feed {
 public:
  explicit Feed(Loader& loader) : loader_(loader) {}

  auto& next() {
    if (loop_) ++*loop_;
    if (!loop_ || *loop_ == loader_.end()) begin();
    if (*loop_ == loader_.end()) begin();  // it stood at the end of an epoch
    return **loop_;
  }
  /// The batch given last was the last of its epoch.
  bool ends_epoch() const { return loader_.batch() == loader_.batches(); }
  /// Epochs that are whole.
  int64_t epochs() const { return static_cast<int64_t>(loader_.epoch()) + (ends_epoch() ? 1 : 0); }

 private:
  void begin() { loop_ = std::make_unique<typename Loader::Iterator>(loader_); }

  Loader& loader_;
  std::unique_ptr<typename Loader::Iterator> loop_;
};

}  // namespace example
