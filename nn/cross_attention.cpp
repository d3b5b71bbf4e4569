#include "linnet/nn/cross_attention.h"

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/ops/attention_weights.h"
#include "linnet/ops/efficient_attention.h"
#include "linnet/ops/shape_ops.h"

namespace linnet::nn {

StateDict CrossState::state_dict() const {
  StateDict state = memory.state_dict();
  if (keys.defined()) state.set("keys", keys.clone());
  return state;
}

void CrossState::load_state_dict(const StateDict& state) {
  CrossState loaded{memory, {}};
  StateDict sums;
  for (const auto& [name, value] : state.tensors()) {
    if (name == "keys" && memory.kind == AttentionKind::softmax)
      loaded.keys = value.clone();
    else
      sums.set(name, value);
  }
  for (const auto& [name, text] : state.texts()) sums.set_text(name, text);
  loaded.memory.load_state_dict(sums);
  if (loaded.keys.defined()) {
    const Tensor& k = loaded.memory.softmax.k;
    LINNET_CHECK(k.defined() && loaded.keys.shape() == k.shape().first(2) && loaded.keys.dtype() == Dtype::u8,
                 "cross attention state: keys ", loaded.keys.shape(), " ", loaded.keys.dtype(), " do not belong to k ",
                 k.shape(), ", u8 (batch, time) wanted");
    loaded.keys = loaded.keys.to(k.device());
  }
  *this = std::move(loaded);
}

CrossState CrossState::select(const Tensor& samples) const {
  CrossState chosen{memory.select(samples), {}};
  if (keys.defined()) chosen.keys = compute::gather_rows("cross attention state", keys, samples);
  return chosen;
}

CrossAttention::CrossAttention(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      q(*this, "q", {.in = options.dim, .out = detail::fused_rows(*this, 1, options.dim), .bias = options.bias}),
      kv(*this, "kv",
         {.in = options.memory_dim ? options.memory_dim : options.dim.get(),
          .out = detail::fused_rows(*this, 2, options.dim),
          .bias = options.bias}),
      out(*this, "out", {.in = options.dim, .out = options.dim, .bias = options.bias}),
      dim_(options.dim),
      heads_(options.heads),
      memory_dim_(kv.weight.size(1)),
      kind_(options.kind),
      eps_(options.eps),
      fused_map_(detail::fused_map(options.feature_map)) {
  detail::check_heads(*this, dim_, heads_, eps_);
  LINNET_CHECK(kind_ != AttentionKind::local, label(), ": local attention given, whose window is of steps of one ",
               "sequence; linear, softmax or efficient wanted");
  detail::make_features(features, *this, kind_, heads_, dim_ / heads_, options.feature_map);
}

CrossAttention::Parts CrossAttention::project(const Variable& memory) const {
  LINNET_CHECK(memory.rank() == 3 && memory.size(-1) == memory_dim_, label(), ": memory ", memory.shape(),
               " is not (batch, time, ", memory_dim_, ")");
  const Shape shape{memory.size(0), memory.size(1), heads_, dim_ / heads_};
  const std::vector<Variable> parts = split(kv(memory), 2, -1);
  return {reshape(parts[0], shape), reshape(parts[1], shape)};
}

Variable CrossAttention::attend(const Variable& queries, const Parts& memory, const KeyMask* keys) const {
  const auto& [k, v] = memory;
  switch (kind_) {
    case AttentionKind::linear: {
      const LinearAttentionOptions options{.feature_map = fused_map_, .eps = eps_, .keys = keys};
      if (!features) return linear_attention(queries, k, v, options);
      return linear_attention(features->of_queries(queries), features->of_keys(k), v, options);
    }
    case AttentionKind::softmax:
      return softmax_attention(queries, k, v, {.keys = keys});
    case AttentionKind::efficient:
      return efficient_attention(queries, k, v, {.keys = keys});
    case AttentionKind::local:
      break;
  }
  fail(label(), ": no kind ", static_cast<int>(kind_));
}

Variable CrossAttention::project_queries(const Variable& x, const Variable& memory) const {
  LINNET_CHECK(x.rank() == 3 && x.size(-1) == dim_, label(), ": input ", x.shape(), " is not (batch, time, ", dim_,
               ")");
  LINNET_CHECK(memory.rank() != 3 || x.size(0) == memory.size(0), label(), ": input ", x.shape(), " and memory ",
               memory.shape(), " differ in batch");
  return reshape(q(x), Shape{x.size(0), x.size(1), heads_, dim_ / heads_});
}

Tensor CrossAttention::weights(const Variable& x, const Variable& memory, const KeyMask* keys) const {
  detail::check_not_recording(*this, "weights");
  Variable queries = project_queries(x, memory), k = project(memory).k;
  if (features) queries = features->of_queries(queries), k = features->of_keys(k);
  if (kind_ == AttentionKind::softmax)
    return attention_weights(queries.value(), k.value(), SoftmaxAttentionOptions{.keys = keys});
  if (kind_ == AttentionKind::efficient)
    return attention_weights(queries.value(), k.value(), EfficientAttentionOptions{.keys = keys});
  return attention_weights(queries.value(), k.value(),
                           LinearAttentionOptions{.feature_map = fused_map_, .eps = eps_, .keys = keys});
}

Variable CrossAttention::operator()(const Variable& x, const Variable& memory, const KeyMask* keys) const {
  const Variable queries = project_queries(x, memory);
  return out(reshape(attend(queries, project(memory), keys), x.shape()));
}

CrossState CrossAttention::encode(const Variable& memory, const KeyMask* keys) const {
  detail::check_not_recording(*this, "encode");
  const auto [k, v] = project(memory);
  CrossState state;
  state.memory.kind = kind_;
  if (kind_ == AttentionKind::linear) {
    const Variable b = features ? features->of_keys(k) : k;
    state.memory.linear = linear_attention_sums(b.value(), v.value(), {.feature_map = fused_map_, .keys = keys});
  } else if (kind_ == AttentionKind::efficient) {
    state.memory.linear = efficient_attention_sums(k.value(), v.value(), {.keys = keys});
  } else {
    state.memory.softmax = {k.value(), v.value(), k.size(1)};
    if (keys) state.keys = keys->steps("encode", "key", k.size(0), k.size(1), k.device()).clone();
  }
  return state;
}

void CrossAttention::check_state(const CrossState& state, int64_t batch) const {
  LINNET_CHECK(state.memory.kind == kind_, label(), ": a state of kind ", linnet::nn::name(state.memory.kind),
               " given, this layer is ", linnet::nn::name(kind_));
  const int64_t width = dim_ / heads_;
  const Dtype dtype = q.weight.dtype();
  const LinearState& sums = state.memory.linear;
  const KeyValueCache& cache = state.memory.softmax;
  const bool is_sums = kind_ != AttentionKind::softmax;
  LINNET_CHECK(is_sums ? sums.s.defined() && sums.z.defined() : cache.k.defined() && cache.v.defined(), label(),
               ": a state without a memory given; encode makes one");
  if (is_sums) {
    const int64_t rows = features ? features->count(dtype, q.weight.device()) : width;
    detail::check_state_part(*this, "s", sums.s.value(), {batch, heads_, rows, width}, dtype);
    detail::check_state_part(*this, "z", sums.z.value(), {batch, heads_, rows}, dtype);
    return;
  }
  const int64_t time = cache.length;
  detail::check_state_part(*this, "k", cache.k, {batch, time, heads_, width}, dtype);
  detail::check_state_part(*this, "v", cache.v, {batch, time, heads_, width}, dtype);
  if (state.keys.defined()) detail::check_state_part(*this, "keys", state.keys, {batch, time}, Dtype::u8);
}

Variable CrossAttention::step(const Variable& x, const CrossState& state) const {
  Tensor y = zeros_like(x.value());
  Workspace workspace;
  add_step(y, x.value(), state, workspace);
  return y;
}

void CrossAttention::add_step(Tensor& y, const Tensor& x, const CrossState& state, Workspace& workspace) const {
  detail::check_not_recording(*this, "step");
  LINNET_CHECK(x.rank() == 2 && x.size(-1) == dim_, label(), ": input ", x.shape(), " is not (batch, ", dim_,
               "), one step");
  const int64_t batch = x.size(0);
  check_state(state, batch);
  const Shape shape{batch, heads_, dim_ / heads_};
  Tensor queries = workspace.take({batch, dim_}, x.dtype(), x.device());
  Tensor heads = workspace.take(shape, x.dtype(), x.device());
  q.into(x, queries);
  if (kind_ == AttentionKind::linear) {
    Tensor a = queries.reshape(shape);
    if (features) a = features->of_queries(a).value();
    linear_attention_query(a, state.memory.linear, heads, {.feature_map = fused_map_, .eps = eps_});
  } else if (kind_ == AttentionKind::efficient) {
    efficient_attention_query(queries.reshape(shape), state.memory.linear, heads);
  } else if (state.keys.defined()) {
    const KeyMask keys = KeyMask::array(state.keys);
    softmax_attention_query(queries.reshape(shape), state.memory.softmax, heads, {.keys = &keys});
  } else {
    softmax_attention_query(queries.reshape(shape), state.memory.softmax, heads);
  }
  out.into(heads.reshape(Shape{batch, dim_}), y, Into::add);
}

}  // namespace linnet::nn
