#include "linnet/ops/softmax_attention.h"

#include "linnet/autograd/record.h"
#include "linnet/ops/softmax_attention_run.h"

namespace linnet {

using namespace softmax_attention_run;

Variable softmax_attention(const Variable& qv, const Variable& kv, const Variable& vv,
                           const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention";
  check_defined(op, qv, kv, vv);
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, options.causal), checked(op, options));
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(call, x);
  // A masked query has lse = -infinity: the way back needs no query mask.
  return record("softmax_attention", out, {qv, kv, vv}, keep(x.q, x.k, x.v, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& rows, const Tensor& keys, const Tensor& pairs) -> Gradients {
                  Tensor dq = zeros_like(q), dk = zeros_like(k), dv = zeros_like(v);
                  backward(call, {q, k, v, keys, {}, pairs}, o, rows, dy, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Variable softmax_attention_qkv(const Variable& qkvv, const SoftmaxAttentionOptions& options) {
  const char* op = "softmax_attention_qkv";
  check_defined(op, qkvv);
  const Tensor& qkv = qkvv.value();
  Inputs x{qkv, qkv, qkv, {}, {}, {}};
  Call call = make_call(check_fused_attention(op, qkv), checked(op, options));
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  read_masks(op, options, call.sizes, x);
  const auto [out, lse] = forward(call, x);
  return record("softmax_attention_qkv", out, {qkvv}, keep(qkv, out, lse, x.keys, x.pairs),
                [call](const Tensor& dy, const Tensor& all, const Tensor& o, const Tensor& rows, const Tensor& keys,
                       const Tensor& pairs) -> Gradients {
                  Tensor grad = zeros_like(all);
                  backward(call, {all, all, all, keys, {}, pairs}, o, rows, dy, grad, grad, grad);
                  return {grad};
                });
}

}  // namespace linnet
