#include "linnet/nn/attention.h"

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/core/compute.h"
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

const char* name(AttentionKind kind) { return kind == AttentionKind::linear ? "linear" : "softmax"; }

StateDict AttentionState::state_dict() const {
  StateDict state;
  state.set_text("kind", name(kind));
  if (kind == AttentionKind::linear) {
    if (!linear.s.defined()) return state;
    state.set("s", linear.s.value().clone());
    state.set("z", linear.z.value().clone());
  } else {
    if (!softmax.k.defined()) return state;
    state.set("k", compute::slice(softmax.k, 1, 0, softmax.length));
    state.set("v", compute::slice(softmax.v, 1, 0, softmax.length));
  }
  return state;
}

void AttentionState::load_state_dict(const StateDict& state) {
  const std::string& given = state.text("kind");
  LINNET_CHECK(given == name(kind), "attention state: kind ", given, " given, this one is ", name(kind));
  const bool is_linear = kind == AttentionKind::linear;
  const char *first = is_linear ? "s" : "k", *second = is_linear ? "z" : "v";
  const auto known = [&](const std::string& each) { return each == first || each == second; };
  for (const auto& entry : state.tensors())
    LINNET_CHECK(known(entry.first), "attention state: unexpected: ", entry.first);
  for (const auto& entry : state.texts())
    LINNET_CHECK(entry.first == "kind", "attention state: unexpected: ", entry.first);
  AttentionState loaded;
  loaded.kind = kind;
  if (state.has(first) || state.has(second)) {
    const Tensor old = is_linear ? (linear.s.defined() ? linear.s.value() : Tensor()) : softmax.k;
    const Device device = old.defined() ? old.device() : Device::cpu;
    const Tensor a = state.get(first).clone().to(device), b = state.get(second).clone().to(device);
    LINNET_CHECK(a.rank() == 4 && a.dtype() == b.dtype() && b.shape() == (is_linear ? a.shape().first(3) : a.shape()),
                 "attention state: ", first, " ", a.shape(), " and ", second, " ", b.shape(),
                 " do not belong together");
    LINNET_CHECK(is_float(a.dtype()) && (!old.defined() || a.dtype() == old.dtype()), "attention state: ", first,
                 " is ", a.dtype(), ", this one is ", old.defined() ? linnet::name(old.dtype()) : "f32 or f64");
    for (const int axis : {0, is_linear ? 1 : 2, 3}) {
      LINNET_CHECK(!old.defined() || a.size(axis) == old.size(axis), "attention state: ", first, " ", a.shape(),
                   " does not fit the layer and batch of ", old.shape());
    }
    if (is_linear) {
      loaded.linear = LinearState(a, b);
    } else {
      loaded.softmax = {a, b, a.size(1)};
    }
  }
  *this = std::move(loaded);
}

AttentionState AttentionState::select(const Tensor& samples) const {
  LINNET_CHECK(samples.defined() && samples.rank() == 1 && samples.dtype() == Dtype::i32, "attention state: samples ",
               samples.shape(), " ", samples.dtype(), " are not i32 (n)");
  const auto rows = [&](const Tensor& x) { return compute::gather_rows("attention state", x, samples); };
  AttentionState chosen;
  chosen.kind = kind;
  if (linear.s.defined()) chosen.linear = LinearState(rows(linear.s.value()), rows(linear.z.value()));
  if (softmax.k.defined()) chosen.softmax = {rows(softmax.k), rows(softmax.v), softmax.length};
  return chosen;
}

Attention::Attention(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)),
      qkv(*this, "qkv", {.in = options.dim, .out = detail::fused_rows(*this, 3, options.dim), .bias = options.bias}),
      out(*this, "out", {.in = options.dim, .out = options.dim, .bias = options.bias}),
      dim_(options.dim),
      heads_(options.heads),
      causal_(options.causal),
      kind_(options.kind),
      eps_(options.eps),
      feature_map_(options.feature_map) {
  detail::check_heads(*this, dim_, heads_, eps_);
}

Variable Attention::operator()(const Variable& x, const KeyMask* keys) const {
  LINNET_CHECK(x.rank() == 3 && x.size(-1) == dim_, label(), ": input ", x.shape(), " is not (batch, time, ", dim_,
               ")");
  const int64_t batch = x.size(0), time = x.size(1);
  const Variable parts = reshape(qkv(x), Shape{batch, time, 3, heads_, dim_ / heads_});
  const Variable heads =
      kind_ == AttentionKind::linear
          ? linear_attention_qkv(
                parts, {.feature_map = feature_map_, .causal = causal_, .normalise = true, .eps = eps_, .keys = keys})
          : softmax_attention_qkv(parts, {.causal = causal_, .scale = std::nullopt, .keys = keys});
  return out(reshape(heads, Shape{batch, time, dim_}));
}

AttentionState Attention::make_state(int64_t batch, int64_t capacity) const {
  LINNET_CHECK(batch >= 0 && capacity >= 0, label(), ": a state for batch ", batch, " and capacity ", capacity,
               ", none may be negative");
  const int64_t width = dim_ / heads_;
  const Dtype dtype = qkv.weight.dtype();
  const Device device = qkv.weight.device();
  AttentionState state;
  state.kind = kind_;
  if (kind_ == AttentionKind::linear) {
    state.linear = LinearState(Tensor::zeros({batch, heads_, width, width}, dtype, device),
                               Tensor::zeros({batch, heads_, width}, dtype, device));
  } else {
    const Shape shape{batch, capacity, heads_, width};
    state.softmax = {Tensor::zeros(shape, dtype, device), Tensor::zeros(shape, dtype, device), 0};
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
    check("s", state.linear.s.value(), {batch, heads_, width, width});
    check("z", state.linear.z.value(), {batch, heads_, width});
  } else {
    const KeyValueCache& cache = state.softmax;
    const bool given = both(cache.k.defined(), cache.v.defined());
    const int64_t room = given && cache.k.rank() == 4 ? cache.k.size(1) : 0;
    LINNET_CHECK(cache.length >= 0 && cache.length <= room, label(), ": a state of ", cache.length,
                 " steps given, with room for ", room);
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
  if (kind_ == AttentionKind::linear) {
    linear_attention_step_qkv(parts, state.linear, heads,
                              {.feature_map = feature_map_, .causal = true, .normalise = true, .eps = eps_});
  } else {
    softmax_attention_step_qkv(parts, state.softmax, heads);
  }
  out.into(heads.reshape(Shape{batch, dim_}), y, Into::add);
}

}  // namespace linnet::nn
