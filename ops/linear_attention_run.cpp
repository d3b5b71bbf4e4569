#include "linnet/ops/linear_attention_run.h"

#include "linnet/ops/linear_attention_calls.h"
#include "linnet/ops/linear_attention_heads.h"
#include "linnet/ops/linear_attention_segments.h"

namespace linnet::linear_attention_run {
namespace {

constexpr int64_t kPiece = 2048;  // rows

/// Into how many pieces the rows of a causal call are cut: all heads go through one before any goes on to the next, as
/// rows of neighbouring heads lie side by side in memory.
int64_t pieces(const Call& call) {
  return call.causal ? std::max<int64_t>(1, (call.sizes.queries + kPiece - 1) / kPiece) : 1;
}

/// f(head, its number, piece, the piece's number) for heads begin .. end - 1, counted through all samples.
template <class F>
void each_piece(const Call& call, int64_t count, bool up, int64_t begin, int64_t end, F f) {
  const AttentionSizes& n = call.sizes;
  while (begin < end) {
    const int64_t b = begin / n.heads, stop = std::min(end, (b + 1) * n.heads);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t number = up ? j : count - 1 - j;
      const int64_t from = number * kPiece, to = number == count - 1 ? n.queries : from + kPiece;
      for (int64_t i = begin; i < stop; ++i) f(i, Piece{b, i % n.heads, from, to}, number);
    }
    begin = stop;
  }
}

template <class T>
void run_forward(const Call& call, const Inputs& x, Result& made, Tensor s, Tensor z) {
  if (made.out.device() == Device::cuda) return forward_call<T>(call, x, made.out, made.d, s, z);
  if (const int64_t cuts = segments(call); cuts > 1) {
    return forward_in_segments<T>(cuts, call, x, made.out, made.d, s, z);
  }
  const AttentionSizes n = call.sizes;
  const Device device = made.out.device();
  const auto& kernel = kernels.of<T>(device);
  const int64_t sums = n.dim * n.value_dim, count = pieces(call);
  if (count > 1) {
    made.checkpoints = Tensor::empty({n.batch, n.heads, count - 1, sums + n.dim}, dtype_of<T>, device);
    if (!s.defined()) s = Tensor::zeros(call.sums_shape(), dtype_of<T>, device);
    if (!z.defined()) z = Tensor::zeros(call.normaliser_shape(), dtype_of<T>, device);
  }
  T *const o_all = made.out.mutable_data<T>(), *const d_all = made.d.mutable_data<T>();
  T* const s_all = s.defined() ? s.mutable_data<T>() : nullptr;
  T* const z_all = z.defined() ? z.mutable_data<T>() : nullptr;
  T* const kept = count > 1 ? made.checkpoints.mutable_data<T>() : nullptr;
  const int64_t own = s_all ? 0 : aligned(sums) + aligned(n.dim);
  Scratch<T> scratch(own + kernel.forward_scratch(n.queries, n.dim, n.value_dim, call.causal), n.batch * n.heads,
                     device);
  parallel_for(n.batch * n.heads, call.nanoseconds(1), [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    each_piece(call, count, true, begin, end, [&](int64_t i, const Piece& piece, int64_t number) {
      auto head = forward_piece<T>(call, x, o_all, d_all, piece);
      if (s_all) {
        head.s = s_all + i * sums;
        head.z = z_all + i * n.dim;
      } else {
        head.s = memory;
        head.z = memory + aligned(sums);
        std::fill_n(memory, own, T(0));
      }
      head.scratch = memory + own;
      kernel.forward(head);
      if (number == count - 1) return;
      T* const checkpoint = kept + (i * (count - 1) + number) * (sums + n.dim);
      std::copy_n(head.z, n.dim, std::copy_n(head.s, sums, checkpoint));
    });
  });
}

template <class T>
void run_backward(const Call& call, const Inputs& x, const Result& made, const Tensor& g, Tensor dq, Tensor dk,
                  Tensor dv, Tensor ds, Tensor dz) {
  if (made.out.device() == Device::cuda) return backward_call<T>(call, x, made.out, made.d, g, dq, dk, dv, ds, dz);
  const AttentionSizes n = call.sizes;
  const bool in_pieces = made.checkpoints.defined();
  if (const int64_t cuts = segments(call); cuts > 1 && !in_pieces) {
    return backward_in_segments<T>(cuts, call, x, made.out, made.d, g, dq, dk, dv, ds, dz);
  }
  const Device device = made.out.device();
  const auto& kernel = kernels.of<T>(device);
  const int64_t sums = n.dim * n.value_dim, count = in_pieces ? pieces(call) : 1;
  if (in_pieces && !ds.defined()) {
    ds = Tensor::zeros(call.sums_shape(), dtype_of<T>, device);
    dz = Tensor::zeros(call.normaliser_shape(), dtype_of<T>, device);
  }
  T *const dq_all = dq.mutable_data<T>(), *const dk_all = dk.mutable_data<T>(), *const dv_all = dv.mutable_data<T>();
  T* const ds_all = ds.defined() ? ds.mutable_data<T>() : nullptr;
  T* const dz_all = dz.defined() ? dz.mutable_data<T>() : nullptr;
  const int64_t own = ds_all ? 0 : aligned(sums) + aligned(n.dim), rows = in_pieces ? kPiece : n.queries;
  Scratch<T> scratch(own + kernel.backward_scratch(rows, n.dim, n.value_dim, call.causal), n.batch * n.heads, device);
  parallel_for(n.batch * n.heads, call.nanoseconds(3), [&](int64_t begin, int64_t end) {
    T* const memory = scratch.claim();
    each_piece(call, count, false, begin, end, [&](int64_t i, const Piece& piece, int64_t number) {
      auto head = backward_piece<T>(call, x, made.out, made.d, g, dq_all, dk_all, dv_all, piece);
      if (ds_all) {
        head.ds = ds_all + i * sums;
        head.dz = dz_all + i * n.dim;
      } else {
        head.ds = memory;
        head.dz = memory + aligned(sums);
        std::fill_n(memory, own, T(0));
      }
      if (number > 0) {
        head.s = made.checkpoints.data<T>() + (i * (count - 1) + number - 1) * (sums + n.dim);
        head.z = head.s + sums;
      } else if (x.s.defined()) {
        head.s = x.s.data<T>() + i * sums;
        head.z = x.z.data<T>() + i * n.dim;
      }
      head.scratch = memory + own;
      kernel.backward(head);
    });
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
          .eps = options.eps,
          .precision = options.precision};
}

void read_masks(const char* op, const LinearAttentionOptions& options, const AttentionSizes& sizes, Inputs& x) {
  const Device device = x.q.device();
  if (options.keys) x.keys = options.keys->steps(op, "key", sizes.batch, sizes.keys, device);
  if (options.queries) x.queries = options.queries->steps(op, "query", sizes.batch, sizes.queries, device);
}

Result forward(const Call& call, const Inputs& x, Tensor s, Tensor z) {
  Result made{.out = Tensor::empty(call.out_shape(), x.q.dtype(), x.q.device()),
              .d = Tensor::empty({call.sizes.batch, call.sizes.queries, call.sizes.heads}, x.q.dtype(), x.q.device()),
              .checkpoints = {}};
  with_float("linear_attention", x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, made, s, z); });
  return made;
}

void backward(const Call& call, const Inputs& x, const Result& made, const Tensor& g, Tensor dq, Tensor dk, Tensor dv,
              Tensor ds, Tensor dz) {
  with_float("linear_attention", x.q.dtype(),
             [&]<class T>() { run_backward<T>(call, x, made, g, dq, dk, dv, ds, dz); });
}

}  // namespace linnet::linear_attention_run
