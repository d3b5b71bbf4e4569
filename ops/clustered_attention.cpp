#include "linnet/ops/clustered_attention.h"

#include <algorithm>
#include <cmath>

#include "linnet/autograd/record.h"
#include "linnet/ops/clustered_attention_run.h"

namespace linnet {
namespace {

using namespace clustered_attention_run;

/// One call whose sizes have been checked; the layouts are left to the caller.
Call make_call(const char* op, const AttentionSizes& n, const ClusteredAttentionOptions& options) {
  check_sizes(op, {.clusters = options.clusters, .bits = options.bits, .iterations = options.iterations});
  LINNET_CHECK(options.topk >= 0, op, ": topk ", options.topk, " given, 0 or more wanted");
  LINNET_CHECK(!options.causal || options.topk > 0, op,
               ": cannot be causal without topk, since the members of a cluster share one softmax over all keys");
  checked(op, SoftmaxAttentionOptions{.scale = options.scale});
  const double usual = n.dim > 0 ? 1 / std::sqrt(static_cast<double>(n.dim)) : 1;
  // More clusters than queries to put into them would be empty.
  const int64_t most = options.groups ? options.clusters : std::max<int64_t>(n.queries, 1);
  return {.sizes = n,
          .q = {},
          .k = {},
          .v = {},
          .clusters = std::min(options.clusters, most),
          .topk = std::min(options.topk, n.keys),
          .causal = options.causal,
          .scale = options.scale.value_or(usual)};
}

Tensor read_groups(const char* op, const Call& call, const ClusteredAttentionOptions& options, const Inputs& x) {
  const AttentionSizes& n = call.sizes;
  if (!options.groups) {
    const Shape planes{n.dim + 1, options.bits};
    const auto drawn = [&] {
      Generator& generator = options.generator ? *options.generator : default_generator();
      return draw_planes(options.bits, x.q, generator);
    };
    const Tensor used = options.planes ? *options.planes : drawn();
    LINNET_CHECK(used.defined() && used.shape() == planes && used.dtype() == x.q.dtype(), op, ": planes ", used.shape(),
                 " ", used.dtype(), " are not ", x.q.dtype(), " (dim + 1, bits) = ", planes);
    check_same_device(op, x.q, used);
    return find_clusters(x.q, call.q, n,
                         {.clusters = call.clusters, .bits = options.bits, .iterations = options.iterations}, used,
                         x.queries);
  }
  const Shape wanted{n.batch, n.queries, n.heads};
  LINNET_CHECK(options.groups->defined() && options.groups->shape() == wanted && options.groups->dtype() == Dtype::i32,
               op, ": groups ", options.groups->shape(), " ", options.groups->dtype(),
               " are not i32 (batch, queries, heads) = ", wanted);
  const std::vector<int32_t> groups = options.groups->to_vector<int32_t>();
  const Tensor mask = x.queries.defined() ? x.queries.to(Device::cpu) : Tensor();
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t step = static_cast<int64_t>(i) / n.heads;
    if (mask.defined() && !mask.data<uint8_t>()[step]) continue;
    LINNET_CHECK(groups[i] >= 0 && groups[i] < call.clusters, op, ": group ", groups[i], " of query ", step % n.queries,
                 " of sample ", step / n.queries, ", but there are ", call.clusters, " clusters");
  }
  check_same_device(op, x.q, *options.groups);
  return *options.groups;
}

/// The op on the tape; `inputs` are q, k and v, or one projection of the three.
Variable attend(const char* op, std::initializer_list<Variable> inputs, const Call& call,
                const ClusteredAttentionOptions& options, Inputs x) {
  const AttentionSizes& n = call.sizes;
  if (options.keys) x.keys = options.keys->steps(op, "key", n.batch, n.keys, x.k.device());
  if (options.queries) x.queries = options.queries->steps(op, "query", n.batch, n.queries, x.q.device());
  x.groups = read_groups(op, call, options, x);
  Found found;
  const Tensor out = forward(call, x, found);
  const bool fused = inputs.size() == 1;
  // records: clustered_attention, clustered_attention_qkv
  return record(op, out, inputs,
                keep(x.q, x.k, x.v, x.groups, x.keys, x.queries, found.top, found.cluster_lse, found.query_lse),
                [call, fused](const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& groups,
                              const Tensor& keys, const Tensor& queries, const Tensor& top, const Tensor& cluster_lse,
                              const Tensor& query_lse) -> Gradients {
                  Tensor dq = zeros_like(q), dk = fused ? dq : zeros_like(k), dv = fused ? dq : zeros_like(v);
                  backward(call, {q, k, v, groups, keys, queries}, {top, cluster_lse, query_lse}, dy, dq, dk, dv);
                  if (fused) return {dq};
                  return {dq, dk, dv};
                });
}

}  // namespace

Variable clustered_attention(const Variable& q, const Variable& k, const Variable& v,
                             const ClusteredAttentionOptions& options) {
  const char* op = "clustered_attention";
  check_defined(op, q, k, v);
  Call call = make_call(op, check_attention(op, q.value(), k.value(), v.value(), options.causal), options);
  call.q = rows_of(q.shape());
  call.k = rows_of(k.shape());
  call.v = rows_of(v.shape());
  return attend(op, {q, k, v}, call, options, {q.value(), k.value(), v.value(), {}, {}, {}});
}

Variable clustered_attention_qkv(const Variable& qkv, const ClusteredAttentionOptions& options) {
  const char* op = "clustered_attention_qkv";
  check_defined(op, qkv);
  Call call = make_call(op, check_fused_attention(op, qkv.value()), options);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  return attend(op, {qkv}, call, options, {qkv.value(), qkv.value(), qkv.value(), {}, {}, {}});
}

}  // namespace linnet
