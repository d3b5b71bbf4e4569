// The kernels of the attentions' recurrent forms: one step of one head, on the state as it lies. The readable form is
// in ops/attention_step_plain.cpp, the fast one in ops/attention_step_level.cpp. Neither needs memory of its own.
#pragma once
#include "linnet/ops/linear_attention_kernels.h"

namespace linnet {

template <class T>
struct LinearStep {
  int64_t dim, value_dim;
  const T *q, *k, *v;
  bool query, key;  // whether they take part; what does not is not read, and without a key the state is not written
  FeatureMap map;
  bool normalise;
  T eps;
  T smallest;  // a denominator below it counts as none
  T *s, *z;    // the state, dim x value_dim and dim
  T* o;
};

template <class T>
struct SoftmaxStep {
  int64_t keys, dim, value_dim;
  const T *q, *k, *v;  // rows of k and v, this step's last, lie k_row and v_row elements apart
  int64_t k_row, v_row;
  bool query;
  const uint8_t* key_mask;  // one a key, or nullptr
  T scale;
  T* o;
};

template <class T>
struct AttentionStepKernels {
  void (*linear)(const LinearStep<T>&);
  void (*softmax)(const SoftmaxStep<T>&);
};

using AttentionStepF32 = AttentionStepKernels<float>;
using AttentionStepF64 = AttentionStepKernels<double>;

}  // namespace linnet
LINNET_DECLARE_LEVELS(AttentionStepF32, attention_step_f32)
LINNET_DECLARE_LEVELS(AttentionStepF64, attention_step_f64)
