// List: a number of modules of one kind, named 0, 1, 2, ...
#pragma once
#include <deque>

#include "linnet/nn/module.h"

namespace linnet::nn {

/// nn::List<models::Block> blocks{*this, "blocks", 2, {.dim = 64, .heads = 4}};
template <class T>
class List : public Module {
 public:
  using Options = typename T::Options;

  /// `count` modules with the same options.
  List(Module& parent, std::string name, int64_t count, const Options& options) : Module(parent, std::move(name)) {
    LINNET_CHECK(count >= 0, label(), ": count ", count, " is negative");
    for (int64_t i = 0; i < count; ++i) items_.emplace_back(*this, std::to_string(i), options);
  }
  /// One module for each of the options.
  List(Module& parent, std::string name, const std::vector<Options>& options) : Module(parent, std::move(name)) {
    for (const Options& own : options) items_.emplace_back(*this, std::to_string(items_.size()), own);
  }

  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  T& operator[](int64_t i) { return items_[at(i)]; }
  const T& operator[](int64_t i) const { return items_[at(i)]; }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  size_t at(int64_t i) const {
    LINNET_CHECK(i >= 0 && i < size(), label(), ": no item ", i, " among ", size());
    return static_cast<size_t>(i);
  }

  std::deque<T> items_;  // never moves what it holds
};

}  // namespace linnet::nn
