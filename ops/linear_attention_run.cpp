#include "linnet/ops/linear_attention_run.h"

#include "linnet/ops/linear_attention_heads.h"
#include "linnet/ops/linear_attention_segments.h"

namespace linnet::linear_attention_run {
namespace {

template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& d, Tensor s, Tensor z) {
  if (const int64_t cuts = segments(call); cuts > 1) return forward_in_segments<T>(cuts, call, x, out, d, s, z);
  const AttentionSizes n = call.sizes;
  const auto& kernel = kernels.of<T>(out.device());
  const int64_t sums = n.dim * n.value_dim;
  const RowLayout o_rows = rows_of(out.shape());
  T* const o_all = out.mutable_data<T>();
  T* const d_all = d.mutable_data<T>();
  T* const s_all = s.defined() ? s.mutable_data<T>() : nullptr;
  T* const z_all = z.defined() ? z.mutable_data<T>() : nullptr;
  const int64_t own = s_all ? 0 : aligned(sums) + aligned(n.dim);
  Scratch<T> scratch(own + kernel.forward_scratch(n.queries, n.dim, n.value_dim), n.batch * n.heads, out.device());
  parallel_for(n.batch * n.heads, call.nanoseconds(1), [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      LinearAttentionForward<T> head;
      fill_inputs(head, call, x, b, h);
      if (s_all) {
        head.s = s_all + i * sums;
        head.z = z_all + i * n.dim;
      } else {
        head.s = memory;
        head.z = memory + aligned(sums);
        std::fill_n(memory, own, T(0));
      }
      head.o = o_all + o_rows.at(b, h);
      head.o_row = o_rows.row;
      head.d = d_all + b * n.queries * n.heads + h;
      head.d_row = n.heads;
      head.scratch = memory + own;
      kernel.forward(head);
    }
  });
}

template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d, const Tensor& g, Tensor dq,
                  Tensor dk, Tensor dv, Tensor ds, Tensor dz) {
  if (const int64_t cuts = segments(call); cuts > 1) {
    return backward_in_segments<T>(cuts, call, x, out, d, g, dq, dk, dv, ds, dz);
  }
  const AttentionSizes n = call.sizes;
  const auto& kernel = kernels.of<T>(out.device());
  const int64_t sums = n.dim * n.value_dim;
  const RowLayout o_rows = rows_of(out.shape());
  T* const dq_all = dq.mutable_data<T>();
  T* const dk_all = dk.mutable_data<T>();
  T* const dv_all = dv.mutable_data<T>();
  T* const ds_all = ds.defined() ? ds.mutable_data<T>() : nullptr;
  T* const dz_all = dz.defined() ? dz.mutable_data<T>() : nullptr;
  const int64_t own = ds_all ? 0 : aligned(sums) + aligned(n.dim);
  Scratch<T> scratch(own + kernel.backward_scratch(n.queries, n.dim, n.value_dim), n.batch * n.heads, out.device());
  parallel_for(n.batch * n.heads, call.nanoseconds(3), [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      LinearAttentionBackward<T> head;
      fill_inputs(head, call, x, b, h);
      if (ds_all) {
        head.ds = ds_all + i * sums;
        head.dz = dz_all + i * n.dim;
      } else {
        head.ds = memory;
        head.dz = memory + aligned(sums);
        std::fill_n(memory, own, T(0));
      }
      head.s = x.s.defined() ? x.s.data<T>() + i * sums : nullptr;
      head.z = x.z.defined() ? x.z.data<T>() + i * n.dim : nullptr;
      head.o = out.data<T>() + o_rows.at(b, h);
      head.g = g.data<T>() + o_rows.at(b, h);
      head.o_row = o_rows.row;
      head.d = d.data<T>() + b * n.queries * n.heads + h;
      head.d_row = n.heads;
      head.dq = dq_all + call.q.at(b, h);
      head.dk = dk_all + call.k.at(b, h);
      head.dv = dv_all + call.v.at(b, h);
      head.scratch = memory + own;
      kernel.backward(head);
    }
  });
}

}  // namespace

Call make_call(const AttentionSizes& sizes, const LinearAttentionOptions& options, bool causal) {
  return {.sizes = sizes,
          .q = {},
          .k = {},
          .v = {},
          .map = options.feature_map,
          .causal = causal,
          .normalise = options.normalise,
          .eps = options.eps};
}

void read_masks(const char* op, const LinearAttentionOptions& options, const AttentionSizes& sizes, Inputs& x) {
  const Device device = x.q.device();
  if (options.keys) x.keys = options.keys->steps(op, "key", sizes.batch, sizes.keys, device);
  if (options.queries) x.queries = options.queries->steps(op, "query", sizes.batch, sizes.queries, device);
}

void forward_into(const Call& call, const Inputs& x, Tensor out, Tensor d, Tensor s, Tensor z) {
  with_float("linear_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, d, s, z); });
}

std::pair<Tensor, Tensor> forward(const Call& call, const Inputs& x, const Tensor& s, const Tensor& z) {
  Tensor out = Tensor::empty(call.out_shape(), x.q.dtype(), x.q.device());
  Tensor d = Tensor::empty({call.sizes.batch, call.sizes.queries, call.sizes.heads}, x.q.dtype(), x.q.device());
  forward_into(call, x, out, d, s, z);
  return {out, d};
}

void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d, const Tensor& g, Tensor dq,
              Tensor dk, Tensor dv, Tensor ds, Tensor dz) {
  with_float("linear_attention", x.q.dtype(),
             [&]<class T>() { run_backward<T>(call, x, out, d, g, dq, dk, dv, ds, dz); });
}

}  // namespace linnet::linear_attention_run
