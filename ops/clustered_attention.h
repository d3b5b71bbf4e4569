// Clustered attention (Vyas, Katharopoulos and Fleuret 2020, "Fast Transformers with Clustered Attention"): queries
// that lie near each other share one softmax over all keys. Time grows with N times the number of clusters, memory with
// N.
#pragma once
#include <optional>

#include "linnet/autograd/variable.h"
#include "linnet/core/random.h"
#include "linnet/ops/masks.h"

namespace linnet {

struct QueryClusterOptions {
  int64_t clusters = 0;     ///< 1 or more; there is no default
  int64_t bits = 32;        ///< of each query's hash, 1 to 63
  int64_t iterations = 10;  ///< assignments of queries to clusters, 1 or more
};

/// Which cluster each query belongs to, i32 (batch, time, heads) below `clusters`, by section 3.2.1: bit b of a query's
/// hash is x . r_b > t_b, with r_b and t_b standard normal and the same for all samples and heads; then k-means over
/// the hashes, with the Hamming distance. The first centres are the hashes of queries evenly spread over those that the
/// mask lets through; the first of the nearest centres counts; a centre's bit is 1 where most of its members' bits are,
/// and a cluster without members keeps its centre. A masked query belongs to cluster 0 and counts for nothing.
Tensor query_clusters(const Tensor& q, const QueryClusterOptions& options, Generator& generator,
                      const QueryMask* queries = nullptr);

struct ClusteredAttentionOptions {
  int64_t clusters = 0;  ///< 1 or more; there is no default
  int64_t topk = 0;     ///< how many keys of its cluster a query weighs by itself: 0 clustered, more improved clustered
  bool causal = false;  ///< wants topk
  int64_t bits = 32, iterations = 10;  ///< as for query_clusters
  std::optional<double> scale = {};    ///< 1 / sqrt(D) where not given
  const KeyMask* keys = nullptr;
  const QueryMask* queries = nullptr;
  const Tensor* groups = nullptr;  ///< i32 (batch, queries, heads), the cluster of each query; found where not given
  Generator* generator = nullptr;  ///< draws the planes of the hashes; default_generator() where not given
};

/// o_i = sum_j A_cj v_j,   A_c = softmax_j(scale qbar_c . k_j)
///
/// with c the cluster of query i and qbar_c the mean of its queries: section 3.2. With topk, section 3.3: T_c holds the
/// topk keys that the cluster weighs most (of equals the first),
///
/// o_i = (sum_{j in T_c} A_cj) sum_{j in T_c} p_ij v_j + sum_{j not in T_c} A_cj v_j,   p_i = softmax_{T_c}(scale q_i .
/// k_j)
///
/// Causal: o_i = sum_j p_ij v_j over the j in T_c that are not later than i, and 0 where there is none. The weight on a
/// later step is exactly 0, but clusters and T_c are made of all steps. It is the form of pytorch-fast-transformers,
/// not of the paper.
///
/// q (batch, queries, heads, D), k (batch, keys, heads, D), v (batch, keys, heads, M) -> (batch, queries, heads, M).
/// Clusters and T_c are constants to the gradient; the mass of the top keys is not. With every query a cluster of its
/// own it is softmax_attention. A masked query, or a sample with no allowed key, gives output 0 and gradient 0; what
/// a mask leaves out is never read. Kept for the way back: q, k, v, the clusters, T_c, and log(sum exp) of each cluster
/// and, with topk, of each query. Errors: sizes out of range, causal without topk, groups of another shape or out of
/// range, and those of softmax_attention.
Variable clustered_attention(const Variable& q, const Variable& k, const Variable& v,
                             const ClusteredAttentionOptions& options);

/// The same for the three parts of one projection, qkv (batch, time, 3, heads, dim), with one gradient of that shape.
Variable clustered_attention_qkv(const Variable& qkv, const ClusteredAttentionOptions& options);

}  // namespace linnet
