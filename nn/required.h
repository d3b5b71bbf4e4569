// Required: an options field that has no default, so that leaving it out does not compile.
#pragma once
#include <type_traits>
#include <utility>

namespace linnet::nn {

/// struct LinearOptions { Required<int64_t> in; ... }: {.out = 3} is then a compile error. Reads as a T. A fraction for
/// an integer is one too.
template <class T>
class Required {
 public:
  template <class U>
  requires std::is_convertible_v<U, T> &&
      (!std::is_integral_v<T> || !std::is_floating_point_v<std::decay_t<U>>)constexpr Required(U&& value)
      : value_(std::forward<U>(value)) {}

  constexpr operator const T&() const { return value_; }
  constexpr const T& get() const { return value_; }

 private:
  T value_;
};

}  // namespace linnet::nn
