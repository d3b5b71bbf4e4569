// Module: moving, saving and loading.
#include <cstring>
#include <map>
#include <set>

#include "linnet/nn/module.h"

namespace linnet::nn {
namespace {

/// A parameter or buffer to be loaded: its names, the first one first, and the tensor that the values go to.
struct Slot {
  std::vector<std::string> names;
  Tensor target;
  Tensor source;
};

bool convertible(Dtype from, Dtype to) { return from == to || (is_float(from) && is_float(to)); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(Device::cpu), y = b.to(Device::cpu);
  return x.bytes() == 0 || std::memcmp(x.raw(), y.raw(), static_cast<size_t>(x.bytes())) == 0;
}

void list(std::string& message, const char* title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  message += message.empty() ? "" : "; ";
  message += title;
  for (size_t i = 0; i < names.size(); ++i) message += (i ? ", " : " ") + names[i];
}

std::string described(const Tensor& x) { return std::string(linnet::name(x.dtype())) + " " + x.shape().str(); }

}  // namespace

// A tied parameter is met again with nothing left to do.
void Module::to(Device device) {
  for (auto& [own, p] : parameters_) {
    p.mutable_value() = p.value().to(device);
    if (p.grad().defined()) p.mutable_grad() = p.grad().to(device);
  }
  for (auto& [own, value] : buffers_) value = value.to(device);
  for (Module* child : children_) child->to(device);
}

void Module::to(Dtype dtype) {
  LINNET_CHECK(is_float(dtype), label(), ": cannot become ", dtype, ", f32 or f64 wanted");
  for (auto& [own, p] : parameters_) {
    p.mutable_value() = p.value().to(dtype);
    if (p.grad().defined()) p.mutable_grad() = p.grad().to(dtype);
  }
  for (auto& [own, value] : buffers_) {
    if (is_float(value.dtype())) value = value.to(dtype);
  }
  for (Module* child : children_) child->to(dtype);
}

StateDict Module::state_dict() const {
  StateDict state;
  for (const auto& [name, value] : named_parameters()) state.set(name, value.value().clone());
  for (const auto& [name, value] : named_buffers()) state.set(name, value.clone());
  for (const auto& [name, first] : tied_names()) state.set_text(name, "tied to " + first);
  return state;
}

LoadReport Module::load_state_dict(const StateDict& state, const LoadOptions& options) {
  std::vector<Slot> slots;
  std::map<std::string, size_t> slot_of;
  std::set<const Storage*> written;
  for (const auto& [name, value] : named_parameters()) {
    slot_of[name] = slots.size();
    slots.push_back({{name}, value.value(), {}});
  }
  for (const auto& [name, value] : named_buffers()) slots.push_back({{name}, value, {}});
  for (const auto& [name, first] : tied_names()) slots[slot_of.at(first)].names.push_back(name);

  for (const Slot& slot : slots) written.insert(slot.target.storage().get());

  LoadReport report;
  std::vector<std::string> misshapen;
  std::set<std::string> known;
  for (Slot& slot : slots) {
    bool found = false;
    for (const std::string& name : slot.names) {
      known.insert(name);
      if (!state.has(name)) continue;
      found = true;
      const Tensor& given = state.get(name);
      if (given.shape() != slot.target.shape() || !convertible(given.dtype(), slot.target.dtype())) {
        misshapen.push_back(name + " is " + described(given) + ", want " + described(slot.target));
      } else if (!slot.source.defined()) {
        // What lies in the module's own memory might be overwritten before its turn.
        slot.source = written.contains(given.storage().get()) ? given.clone() : given;
        slot.source = slot.source.to(slot.target.dtype());
      } else if (!same_bytes(slot.source, given.to(slot.target.dtype()))) {
        misshapen.push_back(name + " is tied to " + slot.names[0] + ", but their values differ");
      }
    }
    if (!found) report.missing.push_back(slot.names[0]);
  }
  for (const auto& entry : state.tensors()) {
    if (!known.contains(entry.first)) report.unexpected.push_back(entry.first);
  }

  std::string message;
  if (options.strict) {
    list(message, "missing:", report.missing);
    list(message, "unexpected:", report.unexpected);
  }
  list(message, "misshapen:", misshapen);
  LINNET_CHECK(message.empty(), "load_state_dict: ", message);
  for (Slot& slot : slots) {
    if (slot.source.defined()) slot.target.copy_from(slot.source);
  }
  return report;
}

}  // namespace linnet::nn
