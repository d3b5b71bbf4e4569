// Shape: the sizes of a tensor's axes, held inline, at most kMaxRank of them.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>

namespace linnet {

inline constexpr int kMaxRank = 8;

/// Sizes of the axes, outermost first. No size is negative, and those above 0 have a product below 2^60: the bytes of
/// every part and every stride of a tensor then fit int64, where a size is 0, too. Whatever would make another shape
/// throws. Trivially copyable, so that a backward lambda may capture it.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes);
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// The size of axis i, from 0 on; throws where there is no such axis.
  int64_t operator[](int i) const {
    if (static_cast<unsigned>(i) >= static_cast<unsigned>(rank_)) throw_no_axis(i);
    return sizes_[i];
  }
  int64_t size(int axis) const;  ///< the size of an axis; -1 is the last; throws where there is no such axis
  int64_t back() const { return size(-1); }
  int64_t numel() const;  ///< the product of all sizes, 1 for a scalar
  const int64_t* begin() const { return sizes_; }
  const int64_t* end() const { return sizes_ + rank_; }
  void push_back(int64_t size);              ///< one more axis, the last
  void set(int axis, int64_t size);          ///< axis may be negative
  Shape first(int count) const;              ///< the first axes
  Shape last(int count) const;               ///< the last axes
  Shape with(int axis, int64_t size) const;  ///< the same with one size replaced; axis may be negative
  Shape without(int axis) const;             ///< the same with one axis left out
  std::string str() const;                   ///< "(2, 3)"

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  [[noreturn]] void throw_no_axis(int i) const;
  void check() const;

  int rank_ = 0;
  int64_t sizes_[kMaxRank] = {};
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// Turns -1, -2, ... into an axis counted from the front; throws, naming the op, where the axis does not exist.
int normal_axis(const char* op, int64_t axis, int rank);

/// NumPy's rule: aligned at the end, sizes equal or 1. Throws, naming the op, where the shapes do not fit.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace linnet
