// One call of clustered attention on its tensors, cluster by cluster. Private to ops/.
#pragma once
#include <vector>

#include "linnet/ops/attention_shapes.h"
#include "linnet/ops/clustered_attention.h"

namespace linnet::clustered_attention_run {

/// All of one call but its tensors.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  int64_t clusters = 1, topk = 0;
  bool causal = false;
  double scale = 1;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  double nanoseconds(double products) const {
    const double pairs = static_cast<double>(clusters * sizes.keys + sizes.queries * topk);
    return pairs * (2 + products * static_cast<double>(sizes.dim + sizes.value_dim) / 20);
  }
};

/// The tensors of one call; where q, k and v lie in one tensor, they are that one. Masks are undefined where there is
/// none.
struct Inputs {
  Tensor q, k, v;
  Tensor groups;  // i32 (batch, queries, heads)
  Tensor keys, queries;
};

/// What forward finds and backward reads.
struct Found {
  Tensor top;          // i32 (batch, heads, clusters, topk): places among the allowed keys
  Tensor cluster_lse;  // (batch, heads, clusters); undefined where causal
  Tensor query_lse;    // (batch, heads, queries), of the softmax over the top keys; undefined without
};

void check_sizes(const char* op, const QueryClusterOptions& options);
/// (dim + 1, bits) for rows like those of q, standard normal.
Tensor draw_planes(int64_t bits, const Tensor& q, Generator& generator);
/// See query_clusters; `queries` is u8 (batch, time) or undefined.
Tensor find_clusters(const Tensor& q, const RowLayout& rows, const AttentionSizes& sizes,
                     const QueryClusterOptions& options, const Tensor& planes, const Tensor& queries);

/// The queries of one head that a mask lets through, cluster after cluster.
struct Members {
  std::vector<int32_t> steps;
  std::vector<int64_t> begin;     // clusters + 1: where a cluster's steps begin
  std::vector<int64_t> nonempty;  // the clusters that have any

  Members(const Call& call, const Inputs& x, int64_t b, int64_t h);
  int64_t count(int64_t cluster) const { return begin[size_t(cluster + 1)] - begin[size_t(cluster)]; }
};

Tensor forward(const Call& call, const Inputs& x, Found& found);
/// Adds the gradients for dy to the zeroed dq, dk and dv, which may be one tensor where the layouts are apart.
void backward(const Call& call, const Inputs& x, const Found& found, const Tensor& dy, Tensor dq, Tensor dk, Tensor dv);

}  // namespace linnet::clustered_attention_run
