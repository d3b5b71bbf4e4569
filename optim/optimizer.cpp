#include "linnet/optim/optimizer.h"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "linnet/core/compute.h"
#include "linnet/optim/update.h"

namespace linnet::optim {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string numbered(const char* word, size_t number) { return std::string(word).append(std::to_string(number)); }
bool below_zero(const Tensor& x) {
  return x.numel() > 0 && compute::reduce(compute::Reduction::min, x, {}, false).item() < 0;
}
std::string rate_name(size_t group) { return numbered("group", group).append(".lr"); }

}  // namespace

Optimizer::Optimizer(const char* op, std::vector<ParameterGroup> groups, double lr,
                     std::vector<std::string> state_names)
    : op_(op), groups_(std::move(groups)), state_names_(std::move(state_names)), lr_(lr) {
  check_option("lr", lr, 0, kInfinity);
  std::map<const char*, size_t> slot_at;  // by where its memory begins; an empty tensor's counts for nothing
  std::set<std::string> names;
  size_t index = 0;
  for (size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].lr) check_option("lr", *groups_[g].lr, 0, kInfinity);
    for (const Variable& parameter : groups_[g].parameters) {
      LINNET_CHECK(parameter.defined(), op_, ": parameter ", index, " is undefined");
      std::string name = parameter.name().empty() ? numbered("parameter", index) : parameter.name();
      LINNET_CHECK(is_float(parameter.dtype()), op_, ": parameter \"", name, "\" is ", parameter.dtype(),
                   ", f32 or f64 wanted");
      LINNET_CHECK(parameter.state().node < 0, op_, ": parameter \"", name,
                   "\" was computed by an op; a leaf is wanted (Variable::leaf)");
      if (parameter.numel() > 0) {
        auto [at, added] = slot_at.emplace(static_cast<const char*>(parameter.value().raw()), slots_.size());
        if (!added) {
          Slot& slot = slots_[at->second];
          LINNET_CHECK(slot.group == g, op_, ": parameter \"", name, "\" is in group ", slot.group, " and in group ",
                       g);
          if (slot.tied[0].numel() != parameter.numel()) fail_overlap(slot, name, parameter.shape());
          bool same = false;
          for (const Variable& other : slot.tied) same = same || other.same_as(parameter);
          if (!same) slot.tied.push_back(parameter);
          ++index;
          continue;
        }
      }
      if (!names.insert(name).second) names.insert(name += numbered("#", index));  // two models in one optimizer
      slots_.push_back({{parameter}, g, name, 0, {}});
      ++index;
    }
  }
  LINNET_CHECK(!slots_.empty(), op_, ": no parameters given");
  const Slot* before = nullptr;
  const char* end = nullptr;  // of its memory
  for (const auto& [begin, at] : slot_at) {
    const Slot& slot = slots_[at];
    if (before && begin < end) fail_overlap(*before, slot.name, slot.tied[0].shape());
    before = &slot;
    end = begin + slot.tied[0].value().bytes();
  }
}

void Optimizer::fail_overlap(const Slot& slot, const std::string& name, const Shape& shape) const {
  fail(op_, ": parameters \"", slot.name, "\" ", slot.tied[0].shape(), " and \"", name, "\" ", shape,
       " share part of their memory, all or nothing wanted");
}

std::vector<ParameterGroup> Optimizer::one_group(std::vector<Variable> parameters) {
  std::vector<ParameterGroup> groups(1);
  groups[0].parameters = std::move(parameters);
  return groups;
}

void Optimizer::check_option(const char* name, double value, double low, double below) const {
  LINNET_CHECK(value >= low && value < below, op_, ": ", name, " ", value, " given, wanted: at least ", low,
               " and below ", below);
}

void Optimizer::check_decay_and_betas(double beta1, double beta2, double weight_decay) const {
  check_option("beta1", beta1, 0, 1);
  check_option("beta2", beta2, 0, 1);
  check_option("weight_decay", weight_decay, 0, kInfinity);
  for (const ParameterGroup& group : groups_) {
    check_option("beta1", group.beta1.value_or(beta1), 0, 1);
    check_option("beta2", group.beta2.value_or(beta2), 0, 1);
    check_option("weight_decay", group.weight_decay.value_or(weight_decay), 0, kInfinity);
  }
}

void Optimizer::check(const Slot& slot) const {
  const auto described = [](const Tensor& x) { return std::string(linnet::name(x.dtype())) + " " + x.shape().str(); };
  const Tensor& value = slot.tied[0].value();
  LINNET_CHECK(value.defined() && is_float(value.dtype()), op_, ": parameter \"", slot.name, "\" is ",
               value.defined() ? linnet::name(value.dtype()) : "undefined", ", f32 or f64 wanted");
  for (const Variable& parameter : slot.tied)
    LINNET_CHECK(parameter.value().raw() == value.raw() && parameter.numel() == value.numel(), op_, ": parameter \"",
                 slot.name, "\" no longer shares its memory with \"", parameter.name(), "\"; make a new optimizer");
  for (size_t k = 0; k < slot.state.size(); ++k)
    LINNET_CHECK(slot.state[k].shape() == value.shape(), op_, ": parameter \"", slot.name, "\" is ", described(value),
                 ", its state \"", state_names_[k], "\" ", described(slot.state[k]), "; make a new optimizer");
}

/// The sum over what is tied, checked; undefined where none came.
Tensor Optimizer::gradient_of(const Slot& slot) const {
  Tensor sum;
  const Tensor& value = slot.tied[0].value();
  for (const Variable& parameter : slot.tied) {
    const Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    LINNET_CHECK(gradient.shape() == parameter.shape() && gradient.dtype() == value.dtype() &&
                     gradient.device() == value.device(),
                 op_, ": parameter \"", slot.name, "\" is ", value.dtype(), " ", parameter.shape(), " on ",
                 value.device(), ", its gradient ", gradient.dtype(), " ", gradient.shape(), " on ", gradient.device());
    Tensor shaped = gradient.reshape(value.shape());
    sum = sum.defined() ? compute::add(sum, shaped) : shaped;
  }
  return sum;
}

void Optimizer::step() {
  std::vector<Tensor> gradients;
  bool any = false;
  for (const Slot& slot : slots_) {
    check(slot);
    gradients.push_back(gradient_of(slot));
    any = any || gradients.back().defined();
  }
  LINNET_CHECK(any, op_,
               ": no parameter has a gradient; was a Tape in scope when the loss was computed, and was "
               "tape.backward(loss) called?");
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Slot& slot = slots_[i];
    const Tensor& value = slot.tied[0].value();
    std::vector<Tensor> state;
    for (size_t k = 0; k < state_names_.size(); ++k)  // the model may have moved
      state.push_back(slot.state.empty() ? zeros_like(value) : slot.state[k].to(value.dtype()).to(value.device()));
    slot.state = std::move(state);
  }
  Updates updates;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    Slot& slot = slots_[i];
    ++slot.step;
    const ParameterGroup& group = groups_[slot.group];
    update(slot, group, gradients[i], group.lr.value_or(lr_) * factor_, updates);
  }
  updates.run();
}

void Optimizer::clear_grads() {
  for (Slot& slot : slots_)
    for (Variable& parameter : slot.tied) parameter.clear_grad();
}

void Optimizer::set_lr(double lr) {
  check_option("lr", lr, 0, kInfinity);
  lr_ = lr;
  factor_ = 1;
}

void Optimizer::set_lr_factor(double factor) {
  check_option("lr_factor", factor, 0, kInfinity);
  factor_ = factor;
}

StateDict Optimizer::state_dict() const {
  StateDict state;
  state.set_text("optimizer", op_);
  state.set_number("lr", lr_);
  state.set_number("lr_factor", factor_);
  for (size_t g = 0; g < groups_.size(); ++g)
    if (groups_[g].lr) state.set_number(rate_name(g), *groups_[g].lr);
  for (const Slot& slot : slots_) {
    state.set_integer(slot.name + ".step", static_cast<uint64_t>(slot.step));
    for (size_t k = 0; slot.step > 0 && k < slot.state.size(); ++k)
      state.set(slot.name + "." + state_names_[k], slot.state[k].clone());
  }
  return state;
}

void Optimizer::load_state_dict(const StateDict& state) {
  LINNET_CHECK(!state.has_text("optimizer") || state.text("optimizer") == op_, op_, ": the state is one of ",
               state.text("optimizer"));
  std::string faults;
  std::set<std::string> known = {"optimizer", "lr", "lr_factor"};
  auto wants_text = [&](const std::string& name) {
    known.insert(name);
    if (!state.has_text(name)) faults += "; missing: " + name;
    return state.has_text(name);
  };
  for (const char* name : {"optimizer", "lr", "lr_factor"}) wants_text(name);
  std::vector<ParameterGroup> groups = groups_;
  for (size_t g = 0; g < groups.size(); ++g)
    if (groups[g].lr && wants_text(rate_name(g))) groups[g].lr = state.number(rate_name(g));
  std::vector<Slot> slots = slots_;
  for (Slot& slot : slots) {
    const Tensor& value = slot.tied[0].value();
    slot.state.clear();
    slot.step = 0;
    if (!wants_text(slot.name + ".step")) continue;
    uint64_t step = state.integer(slot.name + ".step");
    LINNET_CHECK(step < (uint64_t(1) << 62), op_, ": ", slot.name, ".step is ", step);
    slot.step = static_cast<int64_t>(step);
    for (const std::string& part : state_names_) {
      std::string name = slot.name + "." + part;
      if (step == 0) continue;
      known.insert(name);
      if (!state.has(name)) {
        faults += "; missing: " + name;
        continue;
      }
      const Tensor& saved = state.get(name);
      if (saved.shape() != value.shape() || saved.dtype() != value.dtype())
        faults += "; " + name + " is " + linnet::name(saved.dtype()) + " " + saved.shape().str() + ", wanted " +
                  linnet::name(value.dtype()) + " " + value.shape().str();
      else if (part == "v" && below_zero(saved))
        faults += "; " + name + ", a mean of squares, has a value below 0";
      else
        slot.state.push_back(saved);
    }
  }
  for (const auto& entry : state.tensors())
    if (!known.count(entry.first)) faults += "; unexpected: " + entry.first;
  for (const auto& entry : state.texts())
    if (!known.count(entry.first)) faults += "; unexpected: " + entry.first;
  LINNET_CHECK(faults.empty(), op_, ": the state does not fit", faults);

  double lr = state.number("lr"), factor = state.number("lr_factor");
  check_option("lr", lr, 0, kInfinity);
  check_option("lr_factor", factor, 0, kInfinity);
  for (const ParameterGroup& group : groups)
    if (group.lr) check_option("lr", *group.lr, 0, kInfinity);
  for (Slot& slot : slots)
    for (Tensor& tensor : slot.state) {
      Device device = slot.tied[0].device();
      tensor = tensor.device() == device ? tensor.clone() : tensor.to(device);
    }
  groups_ = std::move(groups);
  slots_ = std::move(slots);
  lr_ = lr;
  factor_ = factor;
}

}  // namespace linnet::optim
