#include "linnet/nn/attention.h"

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
#include "linnet/ops/efficient_attention.h"
#include "linnet/ops/shape_ops.h"

namespace linnet::nn {

int64_t detail::fused_rows(const Module& layer, int64_t parts, int64_t dim) {
  constexpr int64_t kMost = int64_t{1} << 32;  // its weight alone would be far beyond any memory
  LINNET_CHECK(dim <= kMost, layer.label(), ": dim ", dim, " given, at most ", kMost, " wanted");
  return parts * dim;
}

void detail::check_heads(const Module& layer, int64_t dim, int64_t heads, double eps) {
  LINNET_CHECK(heads >= 1 && dim % heads == 0, layer.label(), ": dim ", dim, " cannot be divided among ", heads,
               " heads");
  LINNET_CHECK(eps >= 0 && std::isfinite(eps), layer.label(), ": eps ", eps, " given, want finite and not negative");
}

void detail::check_not_recording(const Module& layer, const char* what) {
  LINNET_CHECK(!recording(), layer.label(), ": ", what, " is not recorded, and gradients would be lost; call it ",
               "outside of the Tape's scope or under Tape::Pause");
}

void detail::check_state_part(const Module& layer, const char* part, const Tensor& given, const Shape& wanted,
                              Dtype dtype) {
  LINNET_CHECK(given.shape() == wanted && given.dtype() == dtype, layer.label(), ": state ", part, " ", given.dtype(),
               " ", given.shape(), " given, ", dtype, " ", wanted, " wanted");
}

void detail::make_features(std::optional<FeatureLayer>& features, Module& parent, AttentionKind kind, int64_t heads,
                           int64_t width, const Features& map) {
  if (kind != AttentionKind::linear || map.kind == Features::Kind::fused) return;
  features.emplace(parent, "features", FeatureLayerOptions{.heads = heads, .width = width, .features = map});
}

Attention::Attention(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      qkv(*this, "qkv", {.in = options.dim, .out = detail::fused_rows(*this, 3, options.dim), .bias = options.bias}),
      out(*this, "out", {.in = options.dim, .out = options.dim, .bias = options.bias}),
      dim_(options.dim),
      heads_(options.heads),
      causal_(options.causal),
      kind_(options.kind),
      window_(options.window),
      eps_(options.eps),
      fused_map_(detail::fused_map(options.feature_map)) {
  detail::check_heads(*this, dim_, heads_, eps_);
  LINNET_CHECK(kind_ != AttentionKind::local || window_ >= 0, label(), ": local attention with window ", window_,
               " given, 0 or more wanted; set .window");
  LINNET_CHECK(kind_ != AttentionKind::efficient || !causal_, label(), ": efficient attention cannot be causal, since ",
               "its softmax over positions sees all keys at once; linear attention can");
  detail::make_features(features, *this, kind_, heads_, dim_ / heads_, options.feature_map);
}

Variable Attention::attend(const Variable& parts, const KeyMask* keys) const {
  switch (kind_) {
    case AttentionKind::linear: {
      const LinearAttentionOptions options{.feature_map = fused_map_, .causal = causal_, .eps = eps_, .keys = keys};
      if (!features) return linear_attention_qkv(parts, options);
      const Shape shape{parts.size(0), parts.size(1), heads_, dim_ / heads_};
      const std::vector<Variable> each = split(parts, 3, 2);
      return linear_attention(features->of_queries(reshape(each[0], shape)), features->of_keys(reshape(each[1], shape)),
                              reshape(each[2], shape), options);
    }
    case AttentionKind::softmax:
      return softmax_attention_qkv(parts, {.causal = causal_, .scale = {}, .keys = keys});
    case AttentionKind::local:
      return local_attention_qkv(parts, {.window = window_, .causal = causal_, .keys = keys});
    case AttentionKind::efficient:
      return efficient_attention_qkv(parts, {.keys = keys});
  }
  fail(label(), ": no kind ", static_cast<int>(kind_));
}

Variable Attention::operator()(const Variable& x, const KeyMask* keys) const {
  LINNET_CHECK(x.rank() == 3 && x.size(-1) == dim_, label(), ": input ", x.shape(), " is not (batch, time, ", dim_,
               ")");
  const int64_t batch = x.size(0), time = x.size(1);
  const Variable parts = reshape(qkv(x), Shape{batch, time, 3, heads_, dim_ / heads_});
  return out(reshape(attend(parts, keys), Shape{batch, time, dim_}));
}

Shape Attention::sums_shape(int64_t batch) const {
  const int64_t width = dim_ / heads_;
  return {batch, heads_, features ? features->count(qkv.weight.dtype(), qkv.weight.device()) : width, width};
}

AttentionState Attention::make_state(int64_t batch, int64_t capacity) const {
  LINNET_CHECK(batch >= 0 && capacity >= 0, label(), ": a state for batch ", batch, " and capacity ", capacity,
               ", none may be negative");
  LINNET_CHECK(kind_ != AttentionKind::efficient, label(), ": efficient attention has no recurrent form, since its ",
               "softmax over positions sees all keys at once");
  const int64_t width = dim_ / heads_;
  const Dtype dtype = qkv.weight.dtype();
  const Device device = qkv.weight.device();
  AttentionState state;
  state.kind = kind_;
  if (kind_ == AttentionKind::linear) {
    const Shape sums = sums_shape(batch);
    state.linear = LinearState(Tensor::zeros(sums, dtype, device), Tensor::zeros(sums.first(3), dtype, device));
  } else {
    const bool bounded = kind_ == AttentionKind::local && window_ < capacity;
    const Shape shape{batch, bounded ? window_ + 1 : capacity, heads_, width};
    state.cache() = {Tensor::zeros(shape, dtype, device), Tensor::zeros(shape, dtype, device), 0};
  }
  return state;
}

void Attention::check_state(const AttentionState& state, int64_t batch) const {
  LINNET_CHECK(state.kind == kind_, label(), ": a state of kind ", linnet::nn::name(state.kind),
               " given, this layer is ", linnet::nn::name(kind_));
  const int64_t width = dim_ / heads_;
  const Dtype dtype = qkv.weight.dtype();
  const auto check = [&](const char* part, const Tensor& given, const Shape& wanted) {
    detail::check_state_part(*this, part, given, wanted, dtype);
  };
  const auto both = [&](bool first, bool second) {
    LINNET_CHECK(first == second, label(), ": only one half of the state is defined");
    return first;
  };
  if (kind_ == AttentionKind::linear) {
    if (!both(state.linear.s.defined(), state.linear.z.defined())) return;
    const Shape sums = sums_shape(batch);
    check("s", state.linear.s.value(), sums);
    check("z", state.linear.z.value(), sums.first(3));
  } else {
    const KeyValueCache& cache = state.cache();
    const bool given = both(cache.k.defined(), cache.v.defined());
    const int64_t room = given && cache.k.rank() == 4 ? cache.k.size(1) : 0;
    LINNET_CHECK(cache.length >= 0 && cache.length <= room, label(), ": a state of ", cache.length,
                 " steps given, with room for ", room);
    if (kind_ == AttentionKind::local) {
      const int64_t oldest = state.local.oldest;
      LINNET_CHECK(
          cache.length - 1 <= window_ && (cache.length - 1 == window_ ? oldest >= 0 && oldest <= window_ : oldest == 0),
          label(), ": a state of ", cache.length, " steps that begins at ", oldest, " given, which is not of ",
          "window ", window_);
    }
    if (!given) return;
    check("k", cache.k, {batch, room, heads_, width});
    check("v", cache.v, {batch, room, heads_, width});
  }
}

Variable Attention::step(const Variable& x, AttentionState& state) const {
  Tensor y = zeros_like(x.value());
  Workspace workspace;
  add_step(y, x.value(), state, workspace);
  return y;
}

void Attention::add_step(Tensor& y, const Tensor& x, AttentionState& state, Workspace& workspace) const {
  LINNET_CHECK(causal_, label(), ": only causal attention can go step by step; set .causal = true");
  LINNET_CHECK(!recording(), label(),
               ": step changes its state in place, which a tape cannot replay; call it outside of ",
               "the Tape's scope or under Tape::Pause");
  LINNET_CHECK(x.rank() == 2 && x.size(-1) == dim_, label(), ": input ", x.shape(), " is not (batch, ", dim_,
               "), one step");
  const int64_t batch = x.size(0);
  check_state(state, batch);
  Tensor parts = workspace.take({batch, 3 * dim_}, x.dtype(), x.device());
  Tensor heads = workspace.take({batch, heads_, dim_ / heads_}, x.dtype(), x.device());
  qkv.into(x, parts);
  parts = parts.reshape(Shape{batch, 3, heads_, dim_ / heads_});
  switch (kind_) {
    case AttentionKind::linear: {
      const LinearAttentionOptions linear{.feature_map = fused_map_, .causal = true, .eps = eps_};
      if (!features) {
        linear_attention_step_qkv(parts, state.linear, heads, linear);
        break;
      }
      const auto part = [&](int64_t i) { return compute::slice(parts, 1, i, i + 1).reshape(heads.shape()); };
      linear_attention_step(features->of_queries(part(0)), features->of_keys(part(1)), part(2), state.linear, heads,
                            linear);
      break;
    }
    case AttentionKind::softmax:
      softmax_attention_step_qkv(parts, state.softmax, heads);
      break;
    case AttentionKind::local:
      local_attention_step_qkv(parts, state.local, heads, {.window = window_, .causal = true});
      break;
    case AttentionKind::efficient:
      fail(label(), ": efficient attention has no recurrent form");
  }
  out.into(heads.reshape(Shape{batch, dim_}), y, Into::add);
}

}  // namespace linnet::nn
