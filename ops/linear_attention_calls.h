// What a GPU's kernels of linear attention need of a call. Shared by linear_attention_run.cpp and
// linear_attention_state.cpp.
// Private to ops/.
#pragma once
#include <limits>

#include "linnet/ops/linear_attention_cuda.h"
#include "linnet/ops/linear_attention_run.h"

namespace linnet::linear_attention_run {

inline constexpr FloatInstances<LinearAttentionCalls> call_kernels = {
    {nullptr, nullptr, nullptr, nullptr, &::linnet::cuda::linear_attention_f32},
    {nullptr, nullptr, nullptr, nullptr, &::linnet::cuda::linear_attention_f64}};

template <class T>
HeadRows<T> head_rows(T* data, const RowLayout& rows) {
  return {data + rows.offset, rows.batch, rows.row, rows.head};
}

/// x.k may be undefined.
template <class T>
void fill_call(LinearAttentionCall<T>& p, const Call& call, const Inputs& x) {
  const AttentionSizes& n = call.sizes;
  p.batch = n.batch;
  p.heads = n.heads;
  p.queries = n.queries;
  p.keys = n.keys;
  p.dim = n.dim;
  p.value_dim = n.value_dim;
  p.q = head_rows(x.q.data<T>(), call.q);
  if (x.k.defined()) {
    p.k = head_rows(x.k.data<T>(), call.k);
    p.v = head_rows(x.v.data<T>(), call.v);
  }
  p.key_mask = x.keys.defined() ? x.keys.data<uint8_t>() : nullptr;
  p.query_mask = x.queries.defined() ? x.queries.data<uint8_t>() : nullptr;
  p.map = call.map;
  p.causal = call.causal;
  p.normalise = call.normalise;
  p.eps = static_cast<T>(call.eps);
  p.precision = call.precision;
  p.smallest = std::numeric_limits<T>::min();
}

template <class T>
void forward_call(const Call& call, const Inputs& x, Tensor& out, Tensor& d, Tensor s, Tensor z) {
  LinearAttentionCallForward<T> p{};
  fill_call(p, call, x);
  p.o = out.mutable_data<T>();
  p.d = d.mutable_data<T>();
  p.s = s.defined() ? s.mutable_data<T>() : nullptr;
  p.z = s.defined() ? z.mutable_data<T>() : nullptr;
  call_kernels.of<T>(Device::cuda).forward(p);
}

template <class T>
void backward_call(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d, const Tensor& g, Tensor dq,
                   Tensor dk, Tensor dv, Tensor ds, Tensor dz) {
  LinearAttentionCallBackward<T> p{};
  fill_call(p, call, x);
  p.o = out.data<T>();
  p.d = d.data<T>();
  p.g = g.data<T>();
  p.s = x.s.defined() ? x.s.data<T>() : nullptr;
  p.z = x.s.defined() ? x.z.data<T>() : nullptr;
  p.dq = head_rows(dq.mutable_data<T>(), call.q);
  p.dk = head_rows(dk.mutable_data<T>(), call.k);
  p.dv = head_rows(dv.mutable_data<T>(), call.v);
  p.ds = ds.defined() ? ds.mutable_data<T>() : nullptr;
  p.dz = ds.defined() ? dz.mutable_data<T>() : nullptr;
  call_kernels.of<T>(Device::cuda).backward(p);
}

}  // namespace linnet::linear_attention_run
