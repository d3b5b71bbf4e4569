// One call of softmax attention on its tensors, tile by tile. Shared by the op's forms in softmax_attention.cpp and
// softmax_attention_step.cpp.
// Private to ops/.
#pragma once
#include <utility>

#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/softmax_attention.h"

namespace linnet::softmax_attention_run {

/// All of one call but its tensors.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  bool causal;
  double scale;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  double nanoseconds(double products) const {
    const double scores = static_cast<double>(sizes.queries) * static_cast<double>(sizes.keys) * (causal ? 0.5 : 1);
    return scores * (1 + products * static_cast<double>(sizes.dim + sizes.value_dim) / 40);
  }
};

/// The tensors of one call; in the fused form q, k and v are the same one. Masks are undefined where there is none.
struct Inputs {
  Tensor q, k, v;
  Tensor keys, queries, pairs;
};

/// A call with these options; the layouts of q, k and v are left to the caller.
Call make_call(const AttentionSizes& sizes, const SoftmaxAttentionOptions& options);
/// Sets x.keys, x.queries and x.pairs.
void read_masks(const char* op, const SoftmaxAttentionOptions& options, const AttentionSizes& sizes, Inputs& x);

/// Writes out and lse (batch, queries, heads), the log of each row's sum of exponentials; -infinity where no key is
/// allowed.
void forward_into(const Call& call, const Inputs& x, Tensor out, Tensor lse);
/// The same into new memory: out and lse.
std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x);
/// Adds the gradients for dy to the zeroed dq, dk and dv (in the fused form one tensor, thrice).
void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& lse, const Tensor& dy, Tensor dq,
              Tensor dk, Tensor dv);

}  // namespace linnet::softmax_attention_run
