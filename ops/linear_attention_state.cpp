// The forms of linear attention that carry a state.
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/core/threads.h"
#include "linnet/ops/attention_step_kernels.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/linear_attention_calls.h"

namespace linnet {

using namespace linear_attention_run;

namespace {

constexpr FloatInstances<AttentionStepKernels> step_kernels = LINNET_CPU_FLOAT_INSTANCES(attention_step);

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
  } else if (carries_gradient(part) || part.owners() > 1 || part.value().owners() > 1) {
    part = part.value().clone();
  }
}

/// One step of every head; only a query where x.k is undefined, which leaves the state as it is.
template <class T>
void run_step(const Call& call, const Inputs& x, T* s, T* z, Tensor& out) {
  const AttentionSizes& n = call.sizes;
  T* const o = out.mutable_data<T>();
  if (out.device() == Device::cuda) {
    LinearAttentionCallForward<T> p{};
    fill_call(p, call, x);
    p.o = o;
    p.s = s;
    p.z = z;
    return call_kernels.of<T>(Device::cuda).step(p);
  }
  const auto kernel = step_kernels.of<T>(out.device()).linear;
  const double cost = 20 + 0.2 * static_cast<double>(n.dim * n.value_dim);  // the state comes from memory
  parallel_for(n.batch * n.heads, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / n.heads, h = i % n.heads;
      kernel({.dim = n.dim,
              .value_dim = n.value_dim,
              .q = x.q.data<T>() + call.q.at(b, h),
              .k = x.k.defined() ? x.k.data<T>() + call.k.at(b, h) : nullptr,
              .v = x.k.defined() ? x.v.data<T>() + call.v.at(b, h) : nullptr,
              .query = !x.queries.defined() || x.queries.data<uint8_t>()[b],
              .key = x.k.defined() && (!x.keys.defined() || x.keys.data<uint8_t>()[b]),
              .map = call.map,
              .normalise = call.normalise,
              .eps = static_cast<T>(call.eps),
              .smallest = std::numeric_limits<T>::min(),
              .s = s + i * n.dim * n.value_dim,
              .z = z + i * n.dim,
              .o = o + i * n.value_dim});
    }
  });
}

void step(const char* op, const Call& call, Inputs x, LinearState& state, Tensor& out,
          const LinearAttentionOptions& options) {
  LINNET_CHECK(!recording(), op, ": changes its state in place, which a tape cannot replay; use ",
               "linear_attention_with_state while a tape records, or Tape::Pause");
  read_masks(op, options, call.sizes, x);
  check_state(op, call, state, x.q);
  make_step_out(op, call.sizes, out, x.q);
  make_own(state.s, call.sums_shape(), x.q);
  make_own(state.z, call.normaliser_shape(), x.q);
  Tensor rows = room_for_rows(out, call.out_shape(), {&x.q, &x.k, &x.v});
  with_float(op, x.q.dtype(), [&]<class T>() {
    run_step<T>(call, x, state.s.mutable_value().mutable_data<T>(), state.z.mutable_value().mutable_data<T>(), rows);
  });
  if (!rows.shares_storage(out)) out.copy_from(rows.reshape(out.shape()));
}

}  // namespace

LinearState::LinearState(const LinearState& other) {
  const auto copy = [](const Variable& part) {
    return part.defined() && !carries_gradient(part) ? Variable(part.value().clone()) : part;
  };
  s = copy(other.s);
  z = copy(other.z);
}

LinearAttentionResult linear_attention_with_state(const Variable& qv, const Variable& kv, const Variable& vv,
                                                  const LinearState& state, const LinearAttentionOptions& options) {
  const char* op = "linear_attention_with_state";
  check_defined(op, qv, kv, vv);
  Inputs x{qv.value(), kv.value(), vv.value(), {}, {}, {}, {}};
  Call call = make_call(check_attention(op, x.q, x.k, x.v, true), checked(op, options), true);
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
  const auto [out, d, checkpoints] = forward(call, x, s, z);
  std::vector<Variable> inputs{qv, kv, vv};
  if (given) inputs.insert(inputs.end(), {state.s, state.z});
  const auto kept = keep(x.q, x.k, x.v, out, d, checkpoints, x.keys, x.s, x.z);
  auto made = record_many("linear_attention_with_state", {out, s, z}, inputs, kept,
                          [call, given](const std::vector<Tensor>& dys, std::span<const Tensor> kept_on) -> Gradients {
                            const Tensor &q = kept_on[0], &k = kept_on[1], &v = kept_on[2], &o = kept_on[3];
                            const auto or_zeros = [&](const Tensor& dy, const Shape& shape) {
                              return dy.defined() ? dy.clone() : Tensor::zeros(shape, q.dtype(), q.device());
                            };
                            const Tensor g = dys[0].defined() ? dys[0] : zeros_like(o);
                            Tensor ds = or_zeros(dys[1], call.sums_shape()),
                                   dz = or_zeros(dys[2], call.normaliser_shape());
                            Tensor dq = empty_like(q), dk = empty_like(k), dv = empty_like(v);
                            backward(call, {q, k, v, kept_on[6], {}, kept_on[7], kept_on[8]},
                                     {o, kept_on[4], kept_on[5]}, g, dq, dk, dv, ds, dz);
                            if (!given) return {dq, dk, dv};
                            return {dq, dk, dv, ds, dz};
                          });
  return {made[0], LinearState(made[1], made[2])};
}

LinearState linear_attention_sums(const Tensor& k, const Tensor& v, const LinearAttentionOptions& options) {
  const char* op = "linear_attention_sums";
  check_defined(op, k, v);
  LINNET_CHECK(!recording(), op, ": is not recorded, and a gradient would be lost; use linear_attention_with_state ",
               "while a tape records, or Tape::Pause");
  LINNET_CHECK(!options.queries, op, ": takes a key mask, not a query mask: there are no queries");
  AttentionSizes sizes = check_attention(op, k, k, v, false);
  sizes.queries = 0;
  Call call = make_call(sizes, checked(op, options), false);
  call.q = call.k = rows_of(k.shape());
  call.v = rows_of(v.shape());
  Inputs x{k, k, v, {}, {}, {}, {}};
  read_masks(op, options, sizes, x);
  const Tensor s = Tensor::zeros(call.sums_shape(), k.dtype(), k.device()),
               z = Tensor::zeros(call.normaliser_shape(), k.dtype(), k.device());
  forward(call, x, s, z);
  return {s, z};
}

void linear_attention_step(const Tensor& q, const Tensor& k, const Tensor& v, LinearState& state, Tensor& out,
                           const LinearAttentionOptions& options) {
  const char* op = "linear_attention_step";
  check_defined(op, q, k, v);
  Call call = make_call(check_attention_step(op, q, k, v), checked(op, options), true);
  const AttentionSizes& n = call.sizes;
  call.q = call.k = rows_of({n.batch, 1, n.heads, n.dim});
  call.v = rows_of({n.batch, 1, n.heads, n.value_dim});
  step(op, call, {q, k, v, {}, {}, {}, {}}, state, out, options);
}

void linear_attention_step_qkv(const Tensor& qkv, LinearState& state, Tensor& out,
                               const LinearAttentionOptions& options) {
  const char* op = "linear_attention_step_qkv";
  check_defined(op, qkv);
  const Shape& shape = qkv.shape();
  LINNET_CHECK(shape.rank() == 4 && shape[1] == 3, op, ": qkv ", shape, " is not (batch, 3, heads, dim)");
  const Tensor all = qkv.reshape(Shape{shape[0], 1, 3, shape[2], shape[3]});
  Call call = make_call(check_fused_attention(op, all), checked(op, options), true);
  call.q = rows_of_part(all.shape(), 0);
  call.k = rows_of_part(all.shape(), 1);
  call.v = rows_of_part(all.shape(), 2);
  step(op, call, {all, all, all, {}, {}, {}, {}}, state, out, options);
}

void linear_attention_query(const Tensor& q, const LinearState& state, Tensor& out,
                            const LinearAttentionOptions& options) {
  const char* op = "linear_attention_query";
  check_defined(op, q, state.s, state.z);
  LINNET_CHECK(!recording(), op, ": is not recorded, and a gradient would be lost; use linear_attention while a tape ",
               "records, or Tape::Pause");
  LINNET_CHECK(!options.keys, op, ": takes a query mask, not a key mask: the keys are in the state");
  LINNET_CHECK(state.s.rank() == 4, op, ": state s ", state.s.shape(), " is not (batch, heads, D, M)");
  AttentionSizes sizes = check_attention_step(op, q, q, q);
  sizes.value_dim = state.s.size(3);
  Call call = make_call(sizes, checked(op, options), true);
  call.q = rows_of({sizes.batch, 1, sizes.heads, sizes.dim});
  Inputs x{q, {}, {}, {}, {}, {}, {}};
  read_masks(op, options, call.sizes, x);
  check_state(op, call, state, q);
  make_step_out(op, call.sizes, out, q);
  Tensor rows = room_for_rows(out, call.out_shape(), {&q, &state.s.value(), &state.z.value()});
  with_float(op, q.dtype(), [&]<class T>() {
    // Without a key the kernel writes to neither.
    run_step<T>(call, x, const_cast<T*>(state.s.value().data<T>()), const_cast<T*>(state.z.value().data<T>()), rows);
  });
  if (!rows.shares_storage(out)) out.copy_from(rows.reshape(out.shape()));
}

}  // namespace linnet
