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

inline constexpr FloatInstances<LinearAttentionKernels> kernels = LINNET_CPU_FLOAT_INSTANCES(linear_attention);

/// Rows begin .. end - 1 of head h of sample b: queries, and keys too; but all keys where the call is not causal.
struct Piece {
  int64_t b, h, begin, end;
  int64_t at(const RowLayout& rows) const { return rows.at(b, h) + begin * rows.row; }
};

/// What both ways need to know of a piece.
template <class T>
void fill_inputs(LinearAttentionInputs<T>& head, const Call& call, const Inputs& x, const Piece& piece) {
  const AttentionSizes& n = call.sizes;
  head.queries = piece.end - piece.begin;
  head.keys = call.causal ? head.queries : n.keys;
  head.dim = n.dim;
  head.value_dim = n.value_dim;
  head.q = x.q.data<T>() + piece.at(call.q);
  head.k = x.k.data<T>() + piece.at(call.k);
  head.v = x.v.data<T>() + piece.at(call.v);
  head.q_row = call.q.row;
  head.k_row = call.k.row;
  head.v_row = call.v.row;
  head.key_mask = x.keys.defined() ? x.keys.data<uint8_t>() + piece.b * n.keys + piece.begin : nullptr;
  head.query_mask = x.queries.defined() ? x.queries.data<uint8_t>() + piece.b * n.queries + piece.begin : nullptr;
  head.map = call.map;
  head.causal = call.causal;
  head.normalise = call.normalise;
  head.eps = static_cast<T>(call.eps);
  head.smallest = std::numeric_limits<T>::min();
}

/// One number a query, (batch, queries, heads): where a piece's begin.
inline int64_t first_number(const AttentionSizes& n, const Piece& piece) {
  return (piece.b * n.queries + piece.begin) * n.heads + piece.h;
}

/// What the forward kernel takes, but for the state and scratch memory.
template <class T>
LinearAttentionForward<T> forward_piece(const Call& call, const Inputs& x, T* out, T* d, const Piece& piece) {
  const RowLayout rows = rows_of(call.out_shape());
  LinearAttentionForward<T> head{};
  fill_inputs(head, call, x, piece);
  head.o = out + piece.at(rows);
  head.o_row = rows.row;
  head.d = d + first_number(call.sizes, piece);
  head.d_row = call.sizes.heads;
  return head;
}

/// What the backward kernel takes, but for states and scratch memory; no gradients of rows where dq is nullptr.
template <class T>
LinearAttentionBackward<T> backward_piece(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d,
                                          const Tensor& g, T* dq, T* dk, T* dv, const Piece& piece) {
  const RowLayout rows = rows_of(out.shape());
  LinearAttentionBackward<T> head{};
  fill_inputs(head, call, x, piece);
  head.o = out.data<T>() + piece.at(rows);
  head.g = g.data<T>() + piece.at(rows);
  head.o_row = rows.row;
  head.d = d.data<T>() + first_number(call.sizes, piece);
  head.d_row = call.sizes.heads;
  if (!dq) return head;
  head.dq = dq + piece.at(call.q);
  head.dk = dk + piece.at(call.k);
  head.dv = dv + piece.at(call.v);
  return head;
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
