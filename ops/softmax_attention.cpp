#include "linnet/ops/softmax_attention.h"

#include "linnet/autograd/record.h"
#include "linnet/ops/softmax_attention_run.h"

namespace linnet {
namespace softmax_attention_run {

Variable attend(const char* op, const Variable& qv, const Variable& kv, const Variable& vv,
                const SoftmaxAttentionOptions& options, Band band) {
  check_defined(op, qv, kv, vv);
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, options.causal), checked(op, options), band);
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(call, x);
  // A masked query has lse = -infinity: the way back needs no query mask.
  // records: softmax_attention, local_attention
  return record(op, out, {qv, kv, vv}, keep(x.q, x.k, x.v, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& rows, const Tensor& keys, const Tensor& pairs) -> Gradients {
                  Tensor dq = zeros_like(q), dk = zeros_like(k), dv = zeros_like(v);
                  backward(call, {q, k, v, keys, {}, pairs}, o, rows, dy, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Variable attend_qkv(const char* op, const Variable& qkvv, const SoftmaxAttentionOptions& options, Band band) {
  check_defined(op, qkvv);
  const Tensor& qkv = qkvv.value();
  Inputs x{qkv, qkv, qkv, {}, {}, {}};
  Call call = make_call(check_fused_attention(op, qkv), checked(op, options), band);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(call, x);
  // records: softmax_attention_qkv, local_attention_qkv
  return record(op, out, {qkvv}, keep(qkv, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& all, const Tensor& o, const Tensor& rows, const Tensor& keys,
                       const Tensor& pairs) -> Gradients {
                  Tensor grad = zeros_like(all);
                  backward(call, {all, all, all, keys, {}, pairs}, o, rows, dy, grad, grad, grad);
                  return {grad};
                });
}

}  // namespace softmax_attention_run

namespace {

Band band(const SoftmaxAttentionOptions& options) {
  using softmax_attention_run::kAnywhere;
  return {kAnywhere, options.causal ? 0 : kAnywhere};
}

}  // namespace

Variable softmax_attention(const Variable& q, const Variable& k, const Variable& v,
                           const SoftmaxAttentionOptions& options) {
  return softmax_attention_run::attend("softmax_attention", q, k, v, options, band(options));
}

Variable softmax_attention_qkv(const Variable& qkv, const SoftmaxAttentionOptions& options) {
  return softmax_attention_run::attend_qkv("softmax_attention_qkv", qkv, options, band(options));
}

}  // namespace linnet
