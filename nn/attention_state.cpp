#include "linnet/nn/attention_state.h"

#include "linnet/core/compute.h"
#include "linnet/nn/words.h"

namespace linnet::nn {
namespace {

constexpr std::pair<const char*, AttentionKind> kKinds[] = {{"linear", AttentionKind::linear},
                                                            {"softmax", AttentionKind::softmax},
                                                            {"local", AttentionKind::local},
                                                            {"efficient", AttentionKind::efficient}};

/// Whether the state is sums over the keys; else it is keys and values.
bool is_sums(AttentionKind kind) { return kind == AttentionKind::linear || kind == AttentionKind::efficient; }

}  // namespace

const char* name(AttentionKind kind) {
  for (const auto& [word, each] : kKinds)
    if (each == kind) return word;
  return "unknown";
}

AttentionKind attention_kind(std::string_view word, const char* what) { return detail::of_word(what, word, kKinds); }

StateDict AttentionState::state_dict() const {
  StateDict state;
  state.set_text("kind", name(kind));
  if (kind == AttentionKind::local) state.set_integer("oldest", static_cast<uint64_t>(local.oldest));
  if (is_sums(kind)) {
    if (!linear.s.defined()) return state;
    state.set("s", linear.s.value().clone());
    state.set("z", linear.z.value().clone());
  } else {
    const KeyValueCache& past = cache();
    if (!past.k.defined()) return state;
    state.set("k", compute::slice(past.k, 1, 0, past.length));
    state.set("v", compute::slice(past.v, 1, 0, past.length));
  }
  return state;
}

void AttentionState::load_state_dict(const StateDict& state) {
  const std::string& given = state.text("kind");
  LINNET_CHECK(given == name(kind), "attention state: kind ", given, " given, this one is ", name(kind));
  const bool sums = is_sums(kind), is_local = kind == AttentionKind::local;
  const char *first = sums ? "s" : "k", *second = sums ? "z" : "v";
  const auto known = [&](const std::string& each) { return each == first || each == second; };
  for (const auto& entry : state.tensors())
    LINNET_CHECK(known(entry.first), "attention state: unexpected: ", entry.first);
  for (const auto& entry : state.texts())
    LINNET_CHECK(entry.first == "kind" || (is_local && entry.first == "oldest"),
                 "attention state: unexpected: ", entry.first);
  AttentionState loaded;
  loaded.kind = kind;
  if (state.has(first) || state.has(second)) {
    const Tensor old = sums ? (linear.s.defined() ? linear.s.value() : Tensor()) : cache().k;
    const Device device = old.defined() ? old.device() : Device::cpu;
    const Tensor a = state.get(first).clone().to(device), b = state.get(second).clone().to(device);
    LINNET_CHECK(a.rank() == 4 && a.dtype() == b.dtype() && b.shape() == (sums ? a.shape().first(3) : a.shape()),
                 "attention state: ", first, " ", a.shape(), " and ", second, " ", b.shape(),
                 " do not belong together");
    LINNET_CHECK(is_float(a.dtype()) && (!old.defined() || a.dtype() == old.dtype()), "attention state: ", first,
                 " is ", a.dtype(), ", this one is ", old.defined() ? linnet::name(old.dtype()) : "f32 or f64");
    for (const int axis : {0, sums ? 1 : 2, 3}) {
      LINNET_CHECK(!old.defined() || a.size(axis) == old.size(axis), "attention state: ", first, " ", a.shape(),
                   " does not fit the layer and batch of ", old.shape());
    }
    if (sums) {
      loaded.linear = LinearState(a, b);
    } else {
      loaded.cache() = {a, b, a.size(1)};
    }
  }
  if (is_local) {
    const uint64_t oldest = state.integer("oldest"), steps = static_cast<uint64_t>(loaded.local.ring.length);
    LINNET_CHECK(oldest == 0 || oldest < steps, "attention state: oldest is ", oldest, ", but there are ", steps,
                 " steps");
    loaded.local.oldest = static_cast<int64_t>(oldest);
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
  const KeyValueCache& past = cache();
  if (past.k.defined()) chosen.cache() = {rows(past.k), rows(past.v), past.length};
  chosen.local.oldest = local.oldest;
  return chosen;
}

std::optional<int64_t> AttentionState::batch() const {
  if (linear.s.defined()) return linear.s.size(0);
  const KeyValueCache& past = cache();
  return past.k.defined() ? std::optional(past.k.size(0)) : std::nullopt;
}

}  // namespace linnet::nn
