#include "linnet/core/shape.h"

#include <algorithm>
#include <ostream>
#include <sstream>

#include "linnet/core/error.h"

namespace linnet {

Shape::Shape(std::initializer_list<int64_t> sizes) : Shape(std::span(sizes.begin(), sizes.size())) {}

Shape::Shape(std::span<const int64_t> sizes) {
  LINNET_CHECK(sizes.size() <= kMaxRank, "shape: ", sizes.size(), " axes given, at most ", kMaxRank, " wanted");
  std::copy(sizes.begin(), sizes.end(), sizes_);
  rank_ = static_cast<int>(sizes.size());
  check();
}

void Shape::check() const {
  constexpr int64_t kMost = int64_t{1} << 60;
  int64_t n = 1;
  for (int i = 0; i < rank_; ++i) {
    LINNET_CHECK(sizes_[i] >= 0, "shape: size ", sizes_[i], " of axis ", i, " is negative");
    LINNET_CHECK(!__builtin_mul_overflow(n, std::max<int64_t>(1, sizes_[i]), &n) && n < kMost, "shape: ", *this,
                 " has too many elements");
  }
}

void Shape::throw_no_axis(int i) const {
  fail("shape: axis ", i, " of ", *this, ", which has ", rank_, rank_ == 1 ? " axis" : " axes",
       "; size(-1) is the last one's size");
}

int64_t Shape::size(int axis) const { return sizes_[normal_axis("shape", axis, rank_)]; }

int64_t Shape::numel() const {
  int64_t n = 1;
  for (int64_t size : *this) n *= size;
  return n;
}

void Shape::push_back(int64_t size) {
  LINNET_CHECK(rank_ < kMaxRank, "shape: ", rank_ + 1, " axes given, at most ", kMaxRank, " wanted");
  Shape s = *this;
  s.sizes_[s.rank_++] = size;
  s.check();
  *this = s;
}

void Shape::set(int axis, int64_t size) {
  Shape s = *this;
  s.sizes_[normal_axis("shape", axis, rank_)] = size;
  s.check();
  *this = s;
}

Shape Shape::first(int count) const { return Shape(std::span(sizes_, std::clamp(count, 0, rank_))); }
Shape Shape::last(int count) const {
  count = std::clamp(count, 0, rank_);
  return Shape(std::span(sizes_ + rank_ - count, count));
}

Shape Shape::with(int axis, int64_t size) const {
  Shape s = *this;
  s.set(axis, size);
  return s;
}

Shape Shape::without(int axis) const {
  axis = normal_axis("shape", axis, rank_);
  Shape s;
  for (int i = 0; i < rank_; ++i)
    if (i != axis) s.push_back(sizes_[i]);
  return s;
}

std::string Shape::str() const {
  std::ostringstream out;
  out << *this;
  return out.str();
}

bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '(';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? ", " : "") << shape[i];
  return out << ')';
}

int normal_axis(const char* op, int64_t axis, int rank) {
  LINNET_CHECK(axis >= -rank && axis < rank, op, ": axis ", axis, " of a tensor with ", rank,
               rank == 1 ? " axis" : " axes");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  int rank = std::max(a.rank(), b.rank());
  int64_t sizes[kMaxRank];
  for (int i = 1; i <= rank; ++i) {
    int64_t m = i <= a.rank() ? a[a.rank() - i] : 1;
    int64_t n = i <= b.rank() ? b[b.rank() - i] : 1;
    LINNET_CHECK(m == n || m == 1 || n == 1, op, ": ", a, " and ", b,
                 " do not broadcast; aligned at the end, sizes must be equal or 1");
    sizes[rank - i] = m == 1 ? n : m;
  }
  return Shape(std::span(sizes, rank));
}

}  // namespace linnet
