#include "linnet/ops/linear_attention.h"

#include "linnet/autograd/record.h"
#include "linnet/ops/linear_attention_run.h"

namespace linnet {

using namespace linear_attention_run;

Variable linear_attention(const Variable& qv, const Variable& kv, const Variable& vv,
                          const LinearAttentionOptions& options) {
  const char* op = "linear_attention";
  check_defined(op, qv, kv, vv);
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, options.causal), checked(op, options), options.causal);
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  const auto [out, d, checkpoints] = forward(call, x);
  // A masked query has d = 0: the way back needs no query mask.
  return record("linear_attention", out, {qv, kv, vv}, keep(x.q, x.k, x.v, out, d, checkpoints, x.keys),
                [call](const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& den, const Tensor& states, const Tensor& keys) -> Gradients {
                  Tensor dq = empty_like(q), dk = empty_like(k), dv = empty_like(v);
                  backward(call, {q, k, v, keys, {}, {}, {}}, {o, den, states}, g, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Variable linear_attention_qkv(const Variable& qkvv, const LinearAttentionOptions& options) {
  const char* op = "linear_attention_qkv";
  check_defined(op, qkvv);
  const Tensor& qkv = qkvv.value();
  Inputs x{qkv, qkv, qkv, {}, {}, {}, {}};
  Call call = make_call(check_fused_attention(op, qkv), checked(op, options), options.causal);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  read_masks(op, options, call.sizes, x);
  const auto [out, d, checkpoints] = forward(call, x);
  return record("linear_attention_qkv", out, {qkvv}, keep(qkv, out, d, checkpoints, x.keys),
                [call](const Tensor& g, const Tensor& all, const Tensor& o, const Tensor& den, const Tensor& states,
                       const Tensor& keys) -> Gradients {
                  Tensor grad = empty_like(all);
                  backward(call, {all, all, all, keys, {}, {}, {}}, {o, den, states}, g, grad, grad, grad);
                  return {grad};
                });
}

}  // namespace linnet
