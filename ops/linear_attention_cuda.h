// Linear attention on a GPU, a whole call at a time: its heads together fill the device. Plain structs of pointers,
// sizes and strides; ops/linear_attention.cu fills the table.
// Private to ops/.
#pragma once
#include "linnet/ops/linear_attention_kernels.h"

namespace linnet {

/// Row t of head h of sample b begins at data + b batch + t row + h head.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, row, head;
};

template <class T>
struct LinearAttentionCall {
  int64_t batch, heads, queries, keys, dim, value_dim;
  HeadRows<const T> q, k, v;
  const uint8_t *key_mask, *query_mask;  // (batch, time), or nullptr: all take part
  FeatureMap map;
  bool causal, normalise;
  T eps;
  Precision precision;
  T smallest;  // the smallest normal number: a denominator below it counts as none
};

template <class T>
struct LinearAttentionCallForward : LinearAttentionCall<T> {
  T *o, *d;  // the outputs (batch, queries, heads, value_dim), and the denominators (batch, queries, heads)
  T *s, *z;  // in: the initial state, out: the final one; nullptr where nobody wants it
};

template <class T>
struct LinearAttentionCallBackward : LinearAttentionCall<T> {
  const T *o, *d, *g;  // g: the gradient of o
  const T *s, *z;      // the initial state, or nullptr: zeros
  HeadRows<T> dq, dk, dv;
  T *ds, *dz;  // in: the gradient of the final state, out: of the initial one; nullptr where there is none
};

template <class T>
struct LinearAttentionCalls {
  void (*forward)(const LinearAttentionCallForward<T>&);
  void (*backward)(const LinearAttentionCallBackward<T>&);
  /// One step, added to s and z in place; d is not written. Where k.data is nullptr, a query and nothing more.
  void (*step)(const LinearAttentionCallForward<T>&);
};

using LinearAttentionCallsF32 = LinearAttentionCalls<float>;
using LinearAttentionCallsF64 = LinearAttentionCalls<double>;

}  // namespace linnet
LINNET_DECLARE_CUDA(LinearAttentionCallsF32, linear_attention_f32)
LINNET_DECLARE_CUDA(LinearAttentionCallsF64, linear_attention_f64)
