// LSH attention of one call, on a GPU. Private to ops/.
#pragma once
#include "linnet/ops/lsh_attention_run.h"

namespace linnet {

/// As lsh_attention_run's functions of these names.
struct LshAttentionCalls {
  void (*hash_rows)(const Tensor& x, const RowLayout& rows, const AttentionSizes& sizes, const Tensor& rotations,
                    Tensor& hashes);
  void (*forward)(const lsh_attention_run::Call& call, const lsh_attention_run::Inputs& x, Tensor& out, Tensor& lse);
  void (*backward)(const lsh_attention_run::Call& call, const lsh_attention_run::Inputs& x, const Tensor& out,
                   const Tensor& lse, const Tensor& dy, Tensor& dq, Tensor& dk, Tensor& dv);
};

}  // namespace linnet
LINNET_DECLARE_CUDA(LshAttentionCalls, lsh_attention_calls)

namespace linnet {
inline constexpr Instances<LshAttentionCalls> lsh_attention_calls = {
    .plain = nullptr, .portable = nullptr, .cuda = &cuda::lsh_attention_calls};
}  // namespace linnet
