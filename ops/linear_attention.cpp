#include "linnet/ops/linear_attention.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/core/threads.h"
#include "linnet/ops/attention_shapes.h"

namespace linnet {
namespace {

constexpr Instances<LinearAttentionF32> kernels_f32 = LINNET_INSTANCES(linear_attention_f32);
constexpr Instances<LinearAttentionF64> kernels_f64 = LINNET_INSTANCES(linear_attention_f64);

template <class T>
const LinearAttentionKernels<T>& kernels(Device device) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels_f32.of(device);
  } else {
    return kernels_f64.of(device);
  }
}

/// All of one call but its tensors: plain values, so that the way back may capture it.
struct Call {
  AttentionSizes sizes;
  RowLayout q, k, v;
  FeatureMap map;
  bool causal, normalise;
  double eps;

  Shape out_shape() const { return {sizes.batch, sizes.queries, sizes.heads, sizes.value_dim}; }
  Shape sums_shape() const { return {sizes.batch, sizes.heads, sizes.dim, sizes.value_dim}; }
  Shape normaliser_shape() const { return {sizes.batch, sizes.heads, sizes.dim}; }
  /// A rough cost of one head, `sweeps` times over all steps.
  double nanoseconds(double sweeps) const {
    const double steps = static_cast<double>(sizes.queries + sizes.keys) / 2;
    return sweeps * steps * (20 + 0.05 * static_cast<double>(sizes.dim * sizes.value_dim));
  }
};

/// The tensors of one call; in the fused form q, k and v are the same one.
struct Inputs {
  Tensor q, k, v;
  Tensor keys, queries;  // masks, u8 (batch, time), or undefined
  Tensor s, z;           // the initial state, or undefined
};

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

/// What both ways need to know of head h of sample b.
template <class T>
void fill_inputs(LinearAttentionInputs<T>& head, const Call& call, const Inputs& x, int64_t b, int64_t h) {
  const AttentionSizes& n = call.sizes;
  head.queries = n.queries;
  head.keys = n.keys;
  head.dim = n.dim;
  head.value_dim = n.value_dim;
  head.q = x.q.data<T>() + call.q.at(b, h);
  head.k = x.k.data<T>() + call.k.at(b, h);
  head.v = x.v.data<T>() + call.v.at(b, h);
  head.q_row = call.q.row;
  head.k_row = call.k.row;
  head.v_row = call.v.row;
  head.key_mask = x.keys.defined() ? x.keys.data<uint8_t>() + b * n.keys : nullptr;
  head.query_mask = x.queries.defined() ? x.queries.data<uint8_t>() + b * n.queries : nullptr;
  head.map = call.map;
  head.causal = call.causal;
  head.normalise = call.normalise;
  head.eps = static_cast<T>(call.eps);
  head.smallest = std::numeric_limits<T>::min();
}

/// A size rounded up so that what follows begins on 64 bytes.
int64_t aligned(int64_t n) { return (n + 15) / 16 * 16; }

/// Room for every thread, asked for at once, so that what a call takes does not hang on which threads happen to meet.
template <class T>
class Scratch {
 public:
  Scratch(int64_t size, int64_t items, Device device)
      : size_(aligned(size)),
        all_(Tensor::empty({std::min<int64_t>(num_threads(), items) * size_}, dtype_of<T>, device)),
        next_(all_.mutable_data<T>()) {}
  /// One part's share, 64-byte aligned; called once a part.
  T* claim() { return next_.fetch_add(size_); }

 private:
  int64_t size_;
  Tensor all_;
  std::atomic<T*> next_;
};

/// Writes out and denominators d (batch, queries, heads); s and z go from the initial state to the final one, or are
/// undefined where nobody wants them.
template <class T>
void run_forward(const Call& call, const Inputs& x, Tensor& out, Tensor& d, Tensor s, Tensor z) {
  const AttentionSizes n = call.sizes;
  const auto& kernel = kernels<T>(out.device());
  const int64_t sums = n.dim * n.value_dim;
  const RowLayout o_rows = rows_of(out.shape());
  T* const o_all = out.mutable_data<T>();
  T* const d_all = d.mutable_data<T>();
  T* const s_all = s.defined() ? s.mutable_data<T>() : nullptr;
  T* const z_all = z.defined() ? z.mutable_data<T>() : nullptr;
  const int64_t own = s_all ? 0 : aligned(sums) + aligned(n.dim);
  Scratch<T> scratch(own + kernel.forward_scratch(n.dim, n.value_dim), n.batch * n.heads, out.device());
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

/// The gradients of q, k, v (in the fused form one tensor, thrice) and, in ds and dz, of the state: in, of the final
/// one; out, of the initial one; undefined where there is none.
template <class T>
void run_backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d, const Tensor& g, Tensor dq,
                  Tensor dk, Tensor dv, Tensor ds, Tensor dz) {
  const AttentionSizes n = call.sizes;
  const auto& kernel = kernels<T>(out.device());
  const int64_t sums = n.dim * n.value_dim;
  const RowLayout o_rows = rows_of(out.shape());
  T* const dq_all = dq.mutable_data<T>();
  T* const dk_all = dk.mutable_data<T>();
  T* const dv_all = dv.mutable_data<T>();
  T* const ds_all = ds.defined() ? ds.mutable_data<T>() : nullptr;
  T* const dz_all = dz.defined() ? dz.mutable_data<T>() : nullptr;
  const int64_t own = ds_all ? 0 : aligned(sums) + aligned(n.dim);
  Scratch<T> scratch(own + kernel.backward_scratch(n.dim, n.value_dim), n.batch * n.heads, out.device());
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

/// out and d, new; s and z as in run_forward.
std::pair<Tensor, Tensor> forward(const char* op, const Call& call, const Inputs& x, Tensor s = {}, Tensor z = {}) {
  Tensor out = Tensor::empty(call.out_shape(), x.q.dtype(), x.q.device());
  Tensor d = Tensor::empty({call.sizes.batch, call.sizes.queries, call.sizes.heads}, x.q.dtype(), x.q.device());
  with_float(op, x.q.dtype(), [&]<class T>() { run_forward<T>(call, x, out, d, s, z); });
  return {out, d};
}

void backward(const Call& call, const Inputs& x, const Tensor& out, const Tensor& d, const Tensor& g, const Tensor& dq,
              const Tensor& dk, const Tensor& dv, const Tensor& ds = {}, const Tensor& dz = {}) {
  with_float("linear_attention", x.q.dtype(),
             [&]<class T>() { run_backward<T>(call, x, out, d, g, dq, dk, dv, ds, dz); });
}

/// s and z as they stand in `state`, checked; both or neither.
void check_state(const char* op, const Call& call, const LinearState& state, const Tensor& like) {
  LINNET_CHECK(state.s.defined() == state.z.defined(), op, ": the state has only one of s and z");
  if (!state.s.defined()) return;
  LINNET_CHECK(state.s.shape() == call.sums_shape(), op, ": state s ", state.s.shape(),
               " is not (batch, heads, D, M) = ", call.sums_shape());
  LINNET_CHECK(state.z.shape() == call.normaliser_shape(), op, ": state z ", state.z.shape(),
               " is not (batch, heads, D) = ", call.normaliser_shape());
  for (const Variable* part : {&state.s, &state.z}) {
    check_same_dtype(op, like, part->value());
    check_same_device(op, like, part->value());
  }
}

/// Whether a gradient may flow through x: a leaf that wants one, or a value that an op recorded.
bool carries_gradient(const Variable& x) { return x.requires_grad() || x.state().node >= 0; }

/// Gives `part` memory that no one else sees, so that it may change in place.
void make_own(Variable& part, const Shape& shape, const Tensor& like) {
  if (!part.defined()) {
    part = Tensor::zeros(shape, like.dtype(), like.device());
  } else if (carries_gradient(part) || part.value().owners() > 1) {
    part = part.value().clone();
  }
}

void step(const char* op, Call call, Inputs x, LinearState& state, Tensor& out, const LinearAttentionOptions& options) {
  LINNET_CHECK(!recording(), op, ": changes its state in place, which a tape cannot replay; use ",
               "linear_attention_with_state while a tape records, or Tape::Pause");
  read_masks(op, options, call.sizes, x);
  check_state(op, call, state, x.q);
  const Shape shape{call.sizes.batch, call.sizes.heads, call.sizes.value_dim};
  if (!out.defined()) out = Tensor::empty(shape, x.q.dtype(), x.q.device());
  LINNET_CHECK(out.shape() == shape, op, ": out ", out.shape(), " is not (batch, heads, M) = ", shape);
  check_same_dtype(op, x.q, out);
  check_same_device(op, x.q, out);
  make_own(state.s, call.sums_shape(), x.q);
  make_own(state.z, call.normaliser_shape(), x.q);
  Tensor rows = out.reshape(call.out_shape());  // shares out's memory
  Tensor d = Tensor::empty({call.sizes.batch, 1, call.sizes.heads}, x.q.dtype(), x.q.device());
  with_float(op, x.q.dtype(),
             [&]<class T>() { run_forward<T>(call, x, rows, d, state.s.mutable_value(), state.z.mutable_value()); });
}

}  // namespace

LinearState::LinearState(const LinearState& other) {
  const auto copy = [](const Variable& part) {
    return part.defined() && !carries_gradient(part) ? Variable(part.value().clone()) : part;
  };
  s = copy(other.s);
  z = copy(other.z);
}

Variable linear_attention(const Variable& qv, const Variable& kv, const Variable& vv,
                          const LinearAttentionOptions& options) {
  const char* op = "linear_attention";
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, options.causal), options, options.causal);
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  const auto [out, d] = forward(op, call, x);
  // A masked query has d = 0: the way back needs no query mask.
  return record("linear_attention", out, {qv, kv, vv}, keep(x.q, x.k, x.v, out, d, x.keys),
                [call](const Tensor& g, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o,
                       const Tensor& den, const Tensor& keys) -> Gradients {
                  Tensor dq = empty_like(q), dk = empty_like(k), dv = empty_like(v);
                  backward(call, {q, k, v, keys, {}, {}, {}}, o, den, g, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Variable linear_attention_qkv(const Variable& qkvv, const LinearAttentionOptions& options) {
  const char* op = "linear_attention_qkv";
  const Tensor& qkv = qkvv.value();
  Inputs x{qkv, qkv, qkv, {}, {}, {}, {}};
  Call call = make_call(check_fused_attention(op, qkv), options, options.causal);
  call.q = rows_of_part(qkv.shape(), 0);
  call.k = rows_of_part(qkv.shape(), 1);
  call.v = rows_of_part(qkv.shape(), 2);
  read_masks(op, options, call.sizes, x);
  const auto [out, d] = forward(op, call, x);
  return record(
      "linear_attention_qkv", out, {qkvv}, keep(qkv, out, d, x.keys),
      [call](const Tensor& g, const Tensor& all, const Tensor& o, const Tensor& den, const Tensor& keys) -> Gradients {
        Tensor grad = empty_like(all);
        backward(call, {all, all, all, keys, {}, {}, {}}, o, den, g, grad, grad, grad);
        return {grad};
      });
}

LinearAttentionResult linear_attention_with_state(const Variable& qv, const Variable& kv, const Variable& vv,
                                                  const LinearState& state, const LinearAttentionOptions& options) {
  const char* op = "linear_attention_with_state";
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, true), options, true);
  call.q = rows_of(x.q.shape());
  call.k = rows_of(x.k.shape());
  call.v = rows_of(x.v.shape());
  read_masks(op, options, call.sizes, x);
  check_state(op, call, state, x.q);
  const bool given = state.s.defined();
  if (given) {
    x.s = state.s.value();
    x.z = state.z.value();
  }
  Tensor s = given ? x.s.clone() : Tensor::zeros(call.sums_shape(), x.q.dtype(), x.q.device());
  Tensor z = given ? x.z.clone() : Tensor::zeros(call.normaliser_shape(), x.q.dtype(), x.q.device());
  const auto [out, d] = forward(op, call, x, s, z);
  std::vector<Variable> inputs{qv, kv, vv};
  if (given) inputs.insert(inputs.end(), {state.s, state.z});
  const auto kept = keep(x.q, x.k, x.v, out, d, x.keys, x.s, x.z);
  auto made = record_many(
      "linear_attention_with_state", {out, s, z}, inputs, kept,
      [call, given](const std::vector<Tensor>& dys, std::span<const Tensor> kept_on) -> Gradients {
        const Tensor &q = kept_on[0], &k = kept_on[1], &v = kept_on[2], &o = kept_on[3];
        const auto or_zeros = [&](const Tensor& dy, const Shape& shape) {
          return dy.defined() ? dy.clone() : Tensor::zeros(shape, q.dtype(), q.device());
        };
        const Tensor g = dys[0].defined() ? dys[0] : zeros_like(o);
        Tensor ds = or_zeros(dys[1], call.sums_shape()), dz = or_zeros(dys[2], call.normaliser_shape());
        Tensor dq = empty_like(q), dk = empty_like(k), dv = empty_like(v);
        backward(call, {q, k, v, kept_on[5], {}, kept_on[6], kept_on[7]}, o, kept_on[4], g, dq, dk, dv, ds, dz);
        if (!given) return {dq, dk, dv};
        return {dq, dk, dv, ds, dz};
      });
  return {made[0], LinearState(made[1], made[2])};
}

void linear_attention_step(const Variable& q, const Variable& k, const Variable& v, LinearState& state, Tensor& out,
                           const LinearAttentionOptions& options) {
  const char* op = "linear_attention_step";
  Call call = make_call(check_attention_step(op, q.value(), k.value(), v.value()), options, true);
  const AttentionSizes& n = call.sizes;
  call.q = call.k = rows_of({n.batch, 1, n.heads, n.dim});
  call.v = rows_of({n.batch, 1, n.heads, n.value_dim});
  step(op, call, {q.value(), k.value(), v.value(), {}, {}, {}, {}}, state, out, options);
}

void linear_attention_step_qkv(const Variable& qkv, LinearState& state, Tensor& out,
                               const LinearAttentionOptions& options) {
  const char* op = "linear_attention_step_qkv";
  const Shape& shape = qkv.shape();
  LINNET_CHECK(shape.rank() == 4 && shape[1] == 3, op, ": qkv ", shape, " is not (batch, 3, heads, dim)");
  const Tensor all = qkv.value().reshape(Shape{shape[0], 1, 3, shape[2], shape[3]});
  Call call = make_call(check_fused_attention(op, all), options, true);
  call.q = rows_of_part(all.shape(), 0);
  call.k = rows_of_part(all.shape(), 1);
  call.v = rows_of_part(all.shape(), 2);
  step(op, call, {all, all, all, {}, {}, {}, {}}, state, out, options);
}

}  // namespace linnet
