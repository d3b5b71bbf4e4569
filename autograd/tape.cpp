// The engine: ops go on a list in the order they are called, and backward walks the list from its end. No recursion.
#include "linnet/autograd/tape.h"

#include <algorithm>
#include <atomic>

#include "linnet/autograd/tape_state.h"
#include "linnet/core/compute.h"

namespace linnet {
namespace detail {

/// This thread's innermost tape, which leads to the ones around it. Tapes end in the reverse order of their beginning,
/// except where a user keeps one on the heap: those that are gone are dropped here, on the thread that they began on.
static std::shared_ptr<TapeState>& innermost() {
  thread_local std::shared_ptr<TapeState> tape;
  for (std::shared_ptr<TapeState>* at = &tape; *at;)
    if ((*at)->gone)
      *at = std::shared_ptr<TapeState>((*at)->outer);
    else
      at = &(*at)->outer;
  return tape;
}

TapeState* innermost_tape() { return innermost().get(); }

/// A value that this tape recorded leads to its node; any other value is a leaf, if it wants a gradient or an outer
/// tape recorded it; else a constant.
Edge TapeState::edge_of(const Variable& x) const {
  if (!x.defined()) return {};
  const VariableState& s = x.state();
  if (s.node >= 0 && s.tape == id) return {s.node, s.output, {}};
  bool of_outer_tape = false;
  for (const TapeState* t = outer.get(); t && s.node >= 0; t = t->outer.get())
    of_outer_tape |= s.tape == t->id && !t->ended;
  return s.requires_grad || of_outer_tape ? Edge{-1, 0, x} : Edge{};
}

void TapeState::hold(Node& node, std::span<const Tensor> tensors) {
  node.kept.assign(tensors.begin(), tensors.end());
  node.bytes_kept = 0;
  for (const Tensor& t : tensors) {
    node.versions.push_back(t.defined() ? t.storage()->version() : 0);
    if (t.defined() && kept[t.storage().get()]++ == 0) node.bytes_kept += t.storage()->bytes();
  }
  bytes_kept += node.bytes_kept;
}

void TapeState::release(Node& node) {
  for (const Tensor& t : node.kept) {
    if (!t.defined()) continue;
    auto held = kept.find(t.storage().get());
    if (--held->second) continue;
    bytes_kept -= t.storage()->bytes();
    kept.erase(held);
  }
  node.kept.clear();
  node.backward = nullptr;
  node.dys.clear();
  for (Edge& edge : node.inputs) edge.leaf = {};
}

/// Adds a gradient where the edge leads. The first is taken over; a sum is made in place only in memory that nobody
/// else holds.
void TapeState::send(const Edge& edge, Tensor grad, const Node& from, size_t input) {
  if (!grad.defined() || !edge.wanted()) return;
  bool is_leaf = edge.node < 0;
  const auto [shape, dtype] =
      is_leaf ? Output{edge.leaf.shape(), edge.leaf.dtype()} : nodes[edge.node].outputs[edge.output];
  LINNET_CHECK(grad.shape() == shape && grad.dtype() == dtype, from.op, ": backward gave a gradient ", grad.dtype(),
               " ", grad.shape(), " for input ", input, ", which is ", dtype, " ", shape);
  LINNET_CHECK(!options.check_finite || compute::all_finite(grad), from.op,
               ": backward made the first NaN or infinity, in the gradient of input ", input, " of shape ", shape);
  if (!is_leaf && nodes[edge.node].dys.empty()) nodes[edge.node].dys.resize(nodes[edge.node].outputs.size());
  Tensor& slot = is_leaf ? edge.leaf.state().grad : nodes[edge.node].dys[edge.output];
  LINNET_CHECK(!slot.defined() || (slot.shape() == shape && slot.dtype() == dtype), "backward: a leaf ", dtype, " ",
               shape, " holds a gradient ", slot.dtype(), " ", slot.shape(), " already; clear it first");
  if (!slot.defined()) {
    bool shared = is_leaf && (grad.owners() > 1 || grad.storage()->bytes() != grad.bytes());
    slot = shared ? grad.clone() : std::move(grad);
  } else if (slot.owners() > 1) {
    slot = compute::add(slot, grad);
  } else {
    compute::accumulate_inplace(slot, grad);
  }
}

/// Throws where a tensor was changed since an op kept it that a gradient of these outputs may come to.
void TapeState::check_kept(const std::vector<Variable>& outputs) const {
  std::vector<bool> reached(nodes.size());
  for (const Variable& y : outputs) reached[static_cast<size_t>(y.state().node)] = true;
  for (size_t n = nodes.size(); n-- > 0;) {
    if (!reached[n]) continue;
    const Node& node = nodes[n];
    for (const Edge& edge : node.inputs)
      if (edge.node >= 0) reached[static_cast<size_t>(edge.node)] = true;
    for (size_t i = 0; i < node.kept.size(); ++i)
      LINNET_CHECK(!node.kept[i].defined() || node.kept[i].storage()->version() == node.versions[i], node.op,
                   ": a tensor of shape ", node.kept[i].shape(),
                   " that it kept for backward was changed since; change a clone() of it instead");
  }
}

void TapeState::run(Node& node) {
  auto start = Clock::now();
  std::vector<Tensor> dys = std::move(node.dys);
  Gradients grads = node.backward(dys, node.kept);
  dys.clear();
  LINNET_CHECK(grads.size() == node.inputs.size(), node.op, ": backward gave ", grads.size(), " gradients for ",
               node.inputs.size(), " inputs");
  for (size_t i = 0; i < grads.size(); ++i) send(node.inputs[i], std::move(grads[i]), node, i);
  node.back = Clock::now() - start;
}

void TapeState::backward(const std::vector<Variable>& outputs, std::vector<Tensor> seeds) {
  LINNET_CHECK(!ended, "backward: this tape has ended; a tape replays once, so open a new one for the next step");
  LINNET_CHECK(outputs.size() == seeds.size(), "backward: ", outputs.size(), " outputs but ", seeds.size(), " seeds");
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_defined("backward", outputs[i], seeds[i]);
    const VariableState& s = outputs[i].state();
    LINNET_CHECK(
        s.node >= 0 && s.tape == id,
        "backward: the loss was not recorded on this tape; compute it while the tape is in scope, from parameters "
        "that require a gradient");
    check_same_device("backward", outputs[i].value(), seeds[i]);
    LINNET_CHECK(seeds[i].shape() == outputs[i].shape() && seeds[i].dtype() == outputs[i].dtype(), "backward: seed ",
                 seeds[i].dtype(), " ", seeds[i].shape(), " for an output ", outputs[i].dtype(), " ",
                 outputs[i].shape());
  }
  check_kept(outputs);
  ended = true;
  Node start{};
  start.op = "backward";
  for (size_t i = 0; i < outputs.size(); ++i) send(edge_of(outputs[i]), seeds[i], start, i);
  seeds.clear();
  for (size_t i = nodes.size(); i-- > 0;) {
    if (!nodes[i].dys.empty()) run(nodes[i]);
    release(nodes[i]);
  }
}

bool records(std::span<const Variable> inputs) {
  TapeState* tape = innermost_tape();
  if (!tape || !tape->live()) return false;
  if (tape->options.check_finite) return true;  // what is made of constants is looked at too
  return std::any_of(inputs.begin(), inputs.end(), [&](const Variable& x) { return tape->edge_of(x).wanted(); });
}

std::vector<Variable> record(const char* op, std::vector<Tensor> outputs, std::span<const Variable> inputs,
                             std::span<const Tensor> kept, Backward backward) {
  TapeState* tape = innermost_tape();
  std::vector<Variable> results(std::make_move_iterator(outputs.begin()), std::make_move_iterator(outputs.end()));
  LINNET_CHECK(!results.empty(), op, ": no output given to record");
  if (!records(inputs)) return results;
  if (tape->options.check_finite)
    for (const Variable& y : results)
      LINNET_CHECK(!y.value().defined() || compute::all_finite(y.value()), op,
                   ": made the first NaN or infinity, in an output of shape ", y.shape());
  Node node{};
  node.op = op;
  bool wanted = false;
  for (const Variable& x : inputs) {
    node.inputs.push_back(tape->edge_of(x));
    wanted |= node.inputs.back().wanted();
  }
  if (!wanted) return results;
  for (size_t i = 0; i < results.size(); ++i) {
    VariableState& s = results[i].state();
    s.tape = tape->id;
    s.node = static_cast<int64_t>(tape->nodes.size());
    s.output = static_cast<int>(i);
    node.outputs.push_back({s.value.shape(), s.value.dtype()});
  }
  node.backward = std::move(backward);
  tape->hold(node, kept);
  auto now = Clock::now();
  node.forward = now - tape->last;
  tape->last = now;
  tape->nodes.push_back(std::move(node));
  return results;
}

}  // namespace detail

bool wants_grad(const Variable& x) {
  detail::TapeState* tape = detail::innermost_tape();
  return tape && tape->live() && tape->edge_of(x).wanted();
}

Tape::Tape(TapeOptions options) : state_(std::make_shared<detail::TapeState>()) {
  static std::atomic<uint64_t> count = 0;
  state_->id = ++count;
  state_->options = options;
  state_->outer = detail::innermost();
  state_->last = detail::Clock::now();
  detail::innermost() = state_;
}

Tape::~Tape() {
  state_->gone = true;
  state_->nodes.clear();  // what they keep; the state itself waits to be dropped
}

void Tape::backward(const Variable& loss) {
  check_defined("backward", loss);
  LINNET_CHECK(loss.numel() == 1, "backward: the loss has shape ", loss.shape(),
               ", one element wanted; reduce it with sum or mean, or give backward a seed of its shape");
  backward(loss, Tensor::full(loss.shape(), 1, loss.dtype(), loss.device()));
}

void Tape::backward(const Variable& output, const Tensor& seed) { state_->backward({output}, {seed}); }

void Tape::backward(const std::vector<Variable>& outputs, const std::vector<Tensor>& seeds) {
  state_->backward(outputs, seeds);
}

int64_t Tape::bytes_kept() const { return state_->bytes_kept; }

namespace {
detail::TapeState* current() { return detail::innermost_tape(); }
}  // namespace

Tape::Pause::Pause() : tape_(detail::innermost()), before_(tape_ && tape_->paused) {
  if (tape_) tape_->paused = true;
}
Tape::Pause::~Pause() {
  if (tape_) tape_->paused = before_;
}

bool recording() { return current() && current()->live(); }
bool training() { return recording() && current()->options.training; }

}  // namespace linnet
