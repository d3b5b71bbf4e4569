// Clustered attention of one call, on a GPU. Private to ops/.
#pragma once
#include "linnet/ops/clustered_attention_run.h"

namespace linnet {

/// As clustered_attention_run's functions of these names, into memory that is zero. found.top holds steps, in rising
/// order, and -1 behind them.
struct ClusteredAttentionCalls {
  void (*find_clusters)(const Tensor& q, const RowLayout& rows, const AttentionSizes& sizes,
                        const QueryClusterOptions& options, const Tensor& planes, const Tensor& queries,
                        Tensor& groups);
  void (*forward)(const clustered_attention_run::Call& call, const clustered_attention_run::Inputs& x, Tensor& out,
                  clustered_attention_run::Found& found);
  void (*backward)(const clustered_attention_run::Call& call, const clustered_attention_run::Inputs& x,
                   const clustered_attention_run::Found& found, const Tensor& dy, Tensor& dq, Tensor& dk, Tensor& dv);
};

}  // namespace linnet
LINNET_DECLARE_CUDA(ClusteredAttentionCalls, clustered_attention_calls)

namespace linnet {
inline constexpr Instances<ClusteredAttentionCalls> clustered_attention_calls = {
    .plain = nullptr, .portable = nullptr, .cuda = &cuda::clustered_attention_calls};

#ifdef LINNET_LEVEL
namespace cuda {
void find_query_clusters(const Tensor& q, const RowLayout& rows, const AttentionSizes& sizes,
                         const QueryClusterOptions& options, const Tensor& planes, const Tensor& queries,
                         Tensor& groups);
void clustered_attention_backward(const clustered_attention_run::Call& call, const clustered_attention_run::Inputs& x,
                                  const clustered_attention_run::Found& found, const Tensor& dy, Tensor& dq, Tensor& dk,
                                  Tensor& dv);
}  // namespace cuda
#endif
}  // namespace linnet
