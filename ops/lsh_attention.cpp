#include "linnet/ops/lsh_attention.h"

#include <cmath>
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/ops/lsh_attention_run.h"

namespace linnet {
namespace lsh_attention_run {

void check_buckets(const char* op, int64_t buckets, int64_t rounds) {
  LINNET_CHECK(buckets >= 2 && buckets % 2 == 0 && buckets <= std::numeric_limits<int32_t>::max(), op, ": ", buckets,
               " buckets given, an even number of 2 or more wanted");
  LINNET_CHECK(rounds >= 1, op, ": ", rounds, " rounds given, 1 or more wanted");
}

}  // namespace lsh_attention_run

namespace {

using namespace lsh_attention_run;

/// One call whose sizes have been checked; the layouts are left to the caller.
Call make_call(const char* op, const AttentionSizes& n, const LshAttentionOptions& options) {
  LINNET_CHECK(n.queries == n.keys, op, ": needs as many queries as keys, but q has ", n.queries, " and k has ",
               n.keys);
  LINNET_CHECK(options.chunk >= 1, op, ": chunk ", options.chunk, " given, 1 or more wanted");
  LINNET_CHECK(options.rounds >= 1, op, ": ", options.rounds, " rounds given, 1 or more wanted");
  checked(op, SoftmaxAttentionOptions{.scale = options.scale});
  const double usual = n.dim > 0 ? 1 / std::sqrt(static_cast<double>(n.dim)) : 1;
  return {.sizes = n,
          .q = {},
          .k = {},
          .v = {},
          .chunk = std::min(options.chunk, std::max<int64_t>(n.queries, 1)),
          .rounds = options.rounds,
          .causal = options.causal,
          .self = options.self,
          .own_bucket = options.own_bucket,
          .joint = options.combine == LshRounds::joint,
          .scale = options.scale.value_or(usual)};
}

Tensor read_hashes(const char* op, const Call& call, const LshAttentionOptions& options, const Tensor& k) {
  const AttentionSizes& n = call.sizes;
  if (!options.hashes) {
    check_buckets(op, options.buckets, options.rounds);
    if (!options.rotations) {
      Generator& generator = options.generator ? *options.generator : default_generator();
      return hash_rows(k, call.k, n, draw_rotations(options.buckets, options.rounds, k, generator));
    }
    const Tensor& given = *options.rotations;
    const Shape rotations{n.dim, options.rounds, options.buckets / 2};
    LINNET_CHECK(given.defined() && given.shape() == rotations && given.dtype() == k.dtype(), op, ": rotations ",
                 given.shape(), " ", given.dtype(), " are not ", k.dtype(),
                 " (dim, rounds, buckets / 2) = ", rotations);
    check_same_device(op, k, given);
    return hash_rows(k, call.k, n, given);
  }
  const Shape wanted{n.batch, n.keys, n.heads, call.rounds};
  LINNET_CHECK(options.hashes->defined() && options.hashes->shape() == wanted && options.hashes->dtype() == Dtype::i32,
               op, ": hashes ", options.hashes->shape(), " ", options.hashes->dtype(),
               " are not i32 (batch, time, heads, rounds) = ", wanted);
  check_same_device(op, k, *options.hashes);
  return *options.hashes;
}

/// The op on the tape. `inputs` are q, k and v; q and v in the shared form; or one projection of the three.
Variable attend(const char* op, std::initializer_list<Variable> inputs, const Call& call,
                const LshAttentionOptions& options, const Tensor& q, const Tensor& k, const Tensor& v) {
  Inputs x{q, k, v, {}, {}, {}};
  const AttentionSizes& n = call.sizes;
  if (options.keys) x.keys = options.keys->steps(op, "key", n.batch, n.keys, k.device());
  if (options.queries) x.queries = options.queries->steps(op, "query", n.batch, n.queries, q.device());
  x.hashes = read_hashes(op, call, options, k);
  const auto [out, lse] = forward(call, x);
  const size_t parts = inputs.size();
  // records: lsh_attention, lsh_attention_qkv, lsh_attention_shared
  return record(
      op, out, inputs, keep(q, k, v, call.joint ? out : Tensor(), lse, x.hashes, x.keys, x.queries),
      [call, parts](const Tensor& dy, const Tensor& q_kept, const Tensor& k_kept, const Tensor& v_kept, const Tensor& o,
                    const Tensor& rows, const Tensor& hashes, const Tensor& keys, const Tensor& queries) -> Gradients {
        Tensor dq = zeros_like(q_kept), dk = parts == 3 ? zeros_like(k_kept) : dq,
               dv = parts == 1 ? dq : zeros_like(v_kept);
        backward(call, {q_kept, k_kept, v_kept, hashes, keys, queries}, o, rows, dy, dq, dk, dv);
        if (parts == 3) return {dq, dk, dv};
        if (parts == 2) return {dq, dv};
        return {dq};
      });
}

}  // namespace

Variable lsh_attention(const Variable& q, const Variable& k, const Variable& v, const LshAttentionOptions& options) {
  const char* op = "lsh_attention";
  check_defined(op, q, k, v);
  Call call = make_call(op, check_attention(op, q.value(), k.value(), v.value(), false), options);
  call.q = rows_of(q.shape());
  call.k = rows_of(k.shape());
  call.v = rows_of(v.shape());
  return attend(op, {q, k, v}, call, options, q.value(), k.value(), v.value());
}

Variable lsh_attention_qkv(const Variable& qkv, const LshAttentionOptions& options) {
  const char* op = "lsh_attention_qkv";
  check_defined(op, qkv);
  Call call = make_call(op, check_fused_attention(op, qkv.value()), options);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  return attend(op, {qkv}, call, options, qkv.value(), qkv.value(), qkv.value());
}

Variable lsh_attention_shared(const Variable& q, const Variable& v, const LshAttentionOptions& options) {
  const char* op = "lsh_attention_shared";
  check_defined(op, q, v);
  Call call = make_call(op, check_attention(op, q.value(), q.value(), v.value(), false), options);
  call.q = call.k = rows_of(q.shape());
  call.v = rows_of(v.shape());
  call.shared = true;
  return attend(op, {q, v}, call, options, q.value(), q.value(), v.value());
}

}  // namespace linnet
