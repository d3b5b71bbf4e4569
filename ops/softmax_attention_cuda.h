// Softmax attention of one call, on a GPU. Private to ops/.
#pragma once
#include "linnet/ops/softmax_attention_run.h"

namespace linnet {

struct SoftmaxAttentionCalls {
  /// As softmax_attention_run's forward_into and backward.
  void (*forward)(const softmax_attention_run::Call& call, const softmax_attention_run::Inputs& x, Tensor& out,
                  Tensor& lse);
  void (*backward)(const softmax_attention_run::Call& call, const softmax_attention_run::Inputs& x, const Tensor& out,
                   const Tensor& lse, const Tensor& dy, Tensor& dq, Tensor& dk, Tensor& dv);
  /// One query a head over call.sizes.keys rows of a cache k (batch, capacity, heads, D) and v; out (batch, heads, M).
  void (*step)(const softmax_attention_run::Call& call, const softmax_attention_run::Inputs& x, const Tensor& k,
               const Tensor& v, Tensor& out);
};

}  // namespace linnet
LINNET_DECLARE_CUDA(SoftmaxAttentionCalls, softmax_attention_calls)

namespace linnet {
inline constexpr Instances<SoftmaxAttentionCalls> softmax_attention_calls = {
    .plain = nullptr, .portable = nullptr, .cuda = &cuda::softmax_attention_calls};

#ifdef LINNET_LEVEL
namespace cuda {
void softmax_attention_step(const softmax_attention_run::Call& call, const softmax_attention_run::Inputs& x,
                            const Tensor& k, const Tensor& v, Tensor& out);
}  // namespace cuda
#endif
}  // namespace linnet
