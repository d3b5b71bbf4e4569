// The kernels of linear attention: one head of one sample at a time. Plain structs of pointers, sizes and strides; the
// readable form is in ops/linear_attention_plain.cpp, the fast one in ops/linear_attention_level.cpp.
#pragma once
#include <cstdint>

#include "linnet/core/dispatch.h"

namespace linnet {

/// phi, applied to the rows of q and k: elu(x) + 1, max(x, 0), or x itself (then phi >= 0 is the caller's duty).
enum class FeatureMap : uint8_t { elu1, relu, identity };

/// How products of q, k and v may be made, both ways. bf16 lets a GPU with tensor cores (compute capability 8.0) round
/// phi(q), phi(k), v, the gradient of o and the products of two rows to 8 bits on the way into them, and a state to 16;
/// sums, the states themselves and the denominators stay f32. What cannot, computes in full: the CPU, older GPUs, f64,
/// the output and dv where D is above 128, dq and dk where M is.
enum class Precision : uint8_t { full, bf16 };

/// q (queries x dim), k (keys x dim), v (keys x value_dim): rows lie `..._row` elements apart.
template <class T>
struct LinearAttentionInputs {
  int64_t queries, keys, dim, value_dim;
  const T *q, *k, *v;
  int64_t q_row, k_row, v_row;
  const uint8_t* key_mask;    // one a key, or nullptr: all take part
  const uint8_t* query_mask;  // one a query, or nullptr
  FeatureMap map;
  bool causal, normalise;
  T eps;
  T smallest;  // the smallest normal number: a denominator below it counts as none
};

template <class T>
struct LinearAttentionForward : LinearAttentionInputs<T> {
  T *s, *z;  // the state, dim x value_dim and dim; in: the initial one (zeros), out: the final one
  T *o, *d;  // the outputs, and the denominators: 0 for a masked query, 1 where nothing is normalised
  int64_t o_row, d_row;
  T* scratch;  // forward_scratch(queries, dim, value_dim, causal) numbers, 64-byte aligned
};

template <class T>
struct LinearAttentionBackward : LinearAttentionInputs<T> {
  const T *o, *d, *g;  // g: the gradient of o, rows as o
  int64_t o_row, d_row;
  const T *s, *z;  // the initial state, or nullptr: zeros
  T *dq, *dk,
      *dv;     // every row is written; rows as q, k, v. dq may be nullptr where keys is 0: then only ds and dz count
  T *ds, *dz;  // in: the gradient of the final state (zeros), out: of the initial one
  T* scratch;  // backward_scratch(queries, dim, value_dim, causal) numbers, 64-byte aligned
};

template <class T>
struct LinearAttentionKernels {
  void (*forward)(const LinearAttentionForward<T>&);
  void (*backward)(const LinearAttentionBackward<T>&);
  int64_t (*forward_scratch)(int64_t queries, int64_t dim, int64_t value_dim, bool causal);
  int64_t (*backward_scratch)(int64_t queries, int64_t dim, int64_t value_dim, bool causal);
};

using LinearAttentionF32 = LinearAttentionKernels<float>;
using LinearAttentionF64 = LinearAttentionKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(LinearAttentionF32, linear_attention_f32)
LINNET_DECLARE_LEVELS(LinearAttentionF64, linear_attention_f64)
