// Masks for attention: which keys, which queries, or which pairs take part. The kind of a mask is its type, never
// guessed from a shape.
#pragma once
#include <cstdint>
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet {

namespace detail {
/// One yes or no for every step of every sample, given as lengths or as an array.
class TimeMask {
 public:
  /// u8 (batch, time) on `device`, 1 where a step takes part. Throws, naming the op and `kind` ("key" or "query"),
  /// where the batch or the time differs from what the mask was made with, or a length is above `time`.
  Tensor steps(const char* op, const char* kind, int64_t batch, int64_t time, Device device) const;

 protected:
  TimeMask(const char* type, std::vector<int32_t> lengths);
  TimeMask(const char* type, const Tensor& tensor, bool is_lengths);

 private:
  std::vector<int32_t> lengths_;
  Tensor array_;  // undefined where lengths were given
};
}  // namespace detail

/// Which keys every query may look at. A masked key is never read: NaN there changes nothing.
struct KeyMask : detail::TimeMask {
  /// The first lengths[b] keys of sample b take part; lengths is i32 (batch).
  static KeyMask lengths(const Tensor& lengths) { return KeyMask("KeyMask", lengths, true); }
  static KeyMask lengths(std::vector<int32_t> lengths) { return KeyMask("KeyMask", std::move(lengths)); }
  /// u8 (batch, time): 0 leaves a key out.
  static KeyMask array(const Tensor& steps) { return KeyMask("KeyMask", steps, false); }

 private:
  using TimeMask::TimeMask;
};

/// Which queries are answered. A masked query is never read; its output and its gradient are 0.
struct QueryMask : detail::TimeMask {
  static QueryMask lengths(const Tensor& lengths) { return QueryMask("QueryMask", lengths, true); }
  static QueryMask lengths(std::vector<int32_t> lengths) { return QueryMask("QueryMask", std::move(lengths)); }
  static QueryMask array(const Tensor& steps) { return QueryMask("QueryMask", steps, false); }

 private:
  using TimeMask::TimeMask;
};

/// Which query may look at which key: u8 (queries, keys), the same for every sample and head. For attentions that form
/// the scores of pairs; linear attention cannot take it, since it never forms them.
class PairMask {
 public:
  explicit PairMask(const Tensor& pairs);
  /// The mask on `device`. Throws, naming the op, where the sizes differ.
  Tensor pairs(const char* op, int64_t queries, int64_t keys, Device device) const;

 private:
  Tensor pairs_;
};

}  // namespace linnet
