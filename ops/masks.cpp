#include "linnet/ops/masks.h"

#include <algorithm>

namespace linnet {
namespace detail {

TimeMask::TimeMask(const char* type, std::vector<int32_t> lengths) : lengths_(std::move(lengths)) {
  for (size_t b = 0; b < lengths_.size(); ++b) {
    LINNET_CHECK(lengths_[b] >= 0, type, ": length ", lengths_[b], " of sample ", b, " is negative");
  }
}

TimeMask::TimeMask(const char* type, const Tensor& tensor, bool is_lengths) {
  if (is_lengths) {
    LINNET_CHECK(tensor.defined() && tensor.rank() == 1 && tensor.dtype() == Dtype::i32, type, ": lengths ",
                 tensor.shape(), " ", tensor.dtype(), " are not one i32 a sample, (batch)");
    *this = TimeMask(type, tensor.to_vector<int32_t>());
  } else {
    LINNET_CHECK(tensor.defined() && tensor.rank() == 2 && tensor.dtype() == Dtype::u8, type, ": array ",
                 tensor.shape(), " ", tensor.dtype(), " is not u8 (batch, time)");
    array_ = tensor;
  }
}

Tensor TimeMask::steps(const char* op, const char* kind, int64_t batch, int64_t time, Device device) const {
  if (array_.defined()) {
    LINNET_CHECK(array_.size(0) == batch && array_.size(1) == time, op, ": ", kind, " mask ", array_.shape(),
                 " is not (batch, time) = ", Shape{batch, time});
    LINNET_CHECK(array_.device() == device, op, ": the ", kind, " mask is on ", array_.device(), " and its input on ",
                 device, "; move one with .to(device)");
    return array_;
  }
  LINNET_CHECK(static_cast<int64_t>(lengths_.size()) == batch, op, ": ", kind, " mask has ", lengths_.size(),
               " lengths for a batch of ", batch);
  for (int64_t b = 0; b < batch; ++b) {
    LINNET_CHECK(lengths_[b] <= time, op, ": ", kind, " length ", lengths_[b], " of sample ", b, " is above the time ",
                 time);
  }
  Tensor steps = Tensor::zeros({batch, time}, Dtype::u8, Device::cpu);
  uint8_t* row = steps.mutable_data<uint8_t>();
  for (int64_t b = 0; b < batch; ++b, row += time) std::fill_n(row, lengths_[b], uint8_t{1});
  return steps.to(device);
}

}  // namespace detail

PairMask::PairMask(const Tensor& pairs) : pairs_(pairs) {
  LINNET_CHECK(pairs.defined() && pairs.rank() == 2 && pairs.dtype() == Dtype::u8, "PairMask: array ", pairs.shape(),
               " ", pairs.dtype(), " is not u8 (queries, keys)");
}

Tensor PairMask::pairs(const char* op, int64_t queries, int64_t keys, Device device) const {
  LINNET_CHECK(pairs_.size(0) == queries && pairs_.size(1) == keys, op, ": pair mask ", pairs_.shape(),
               " is not (queries, keys) = ", Shape{queries, keys});
  LINNET_CHECK(pairs_.device() == device, op, ": the pair mask is on ", pairs_.device(), " and its input on ", device,
               "; move one with .to(device)");
  return pairs_;
}

}  // namespace linnet
