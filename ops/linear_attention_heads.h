// What the kernels of linear attention need of one head, and their scratch memory. Shared by linear_attention_run.cpp
// and linear_attention_segments.cpp.
// Private to ops/.
#pragma once
#include <algorithm>
#include <atomic>
#include <limits>

#include "linnet/core/threads.h"
#include "linnet/ops/linear_attention_run.h"

namespace linnet::linear_attention_run {

inline constexpr FloatInstances<LinearAttentionKernels> kernels = LINNET_FLOAT_INSTANCES(linear_attention);

/// What both ways need to know of head h of sample b.
template <class T>
void fill_inputs(LinearAttentionInputs<T>& head, const Call& call, const Inputs& x, int64_t b, int64_t h) {
  const AttentionSizes& n = call.sizes;
  head.queries = n.queries;
  head.keys = n.keys;
  head.dim = n.dim;
  head.value_dim = n.value_dim;
  head.q = x.q.data<T>() + call.q.at(b, h);
  head.k = x.k.data<T>() + call.k.at(b, h);
  head.v = x.v.data<T>() + call.v.at(b, h);
  head.q_row = call.q.row;
  head.k_row = call.k.row;
  head.v_row = call.v.row;
  head.key_mask = x.keys.defined() ? x.keys.data<uint8_t>() + b * n.keys : nullptr;
  head.query_mask = x.queries.defined() ? x.queries.data<uint8_t>() + b * n.queries : nullptr;
  head.map = call.map;
  head.causal = call.causal;
  head.normalise = call.normalise;
  head.eps = static_cast<T>(call.eps);
  head.smallest = std::numeric_limits<T>::min();
}

/// A size rounded up so that what follows begins on 64 bytes.
inline int64_t aligned(int64_t n) { return (n + 15) / 16 * 16; }

/// Room for every thread, asked for at once, so that what a call takes does not hang on which threads happen to meet.
template <class T>
class Scratch {
 public:
  Scratch(int64_t size, int64_t items, Device device)
      : size_(aligned(size)),
        shares_(std::min<int64_t>(num_threads(), items)),
        all_(Tensor::empty({shares_ * size_}, dtype_of<T>, device)),
        data_(all_.mutable_data<T>()) {}
  /// One part's share, 64-byte aligned; called once a part.
  T* claim() {
    const int64_t share = next_++;
    LINNET_CHECK(share < shares_, "linear_attention: the number of threads was changed while it ran");
    return data_ + share * size_;
  }

 private:
  int64_t size_, shares_;
  Tensor all_;
  T* data_;
  std::atomic<int64_t> next_ = 0;
};

}  // namespace linnet::linear_attention_run
