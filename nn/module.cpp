#include "linnet/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <typeinfo>

namespace linnet::nn {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  if (prefix.empty() || name.empty()) return prefix + name;
  return prefix + "." + name;
}

}  // namespace

Module::Module(Module& parent, std::string name) : Module(&parent, std::move(name)) {}

Module::Module(Module* parent, std::string name) : name_(std::move(name)), parent_(parent) {
  if (!parent_) return;
  parent_->check_name(name_);
  parent_->children_.push_back(this);
}

Module::~Module() {
  if (parent_) std::erase(parent_->children_, this);
  for (Module* child : children_) child->parent_ = nullptr;
}

std::string Module::path() const { return parent_ ? join(parent_->path(), name_) : name_; }
std::string Module::path_of(const std::string& name) const { return join(path(), name); }

std::string Module::kind() const {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> full(abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status),
                                              std::free);
  std::string text = full ? full.get() : "Module";
  if (text.back() == '>') {  // List<linnet::models::Block>: the arguments go
    int depth = 0;
    while (!text.empty()) {
      depth += (text.back() == '>') - (text.back() == '<');
      text.pop_back();
      if (depth == 0) break;
    }
  }
  const size_t scope = text.rfind("::");
  return scope == std::string::npos ? text : text.substr(scope + 2);
}

std::string Module::label() const {
  const std::string where = path();
  return where.empty() ? kind() : kind() + " " + where;
}

void Module::check_name(const std::string& name) const {
  LINNET_CHECK(!name.empty() && name.find('.') == std::string::npos, label(), ": \"", name,
               "\" is no name for a part, want one without dots that is not empty");
  bool taken = false;
  for (const Module* child : children_) taken |= child->name_ == name;
  for (const auto& own : parameters_) taken |= own.first == name;
  for (const auto& own : buffers_) taken |= own.first == name;
  LINNET_CHECK(!taken, label(), ": two parts are named \"", name, "\", want names that differ");
}

Variable Module::parameter(const std::string& name, const Shape& shape, const Init& init) {
  check_name(name);
  const std::string full = path_of(name);
  Generator generator{default_generator().seed, stream_of(full), 0};
  LINNET_CHECK(init, full, ": no init given");
  Tensor value;
  try {
    value = init(shape, generator);
  } catch (const Error& error) {
    fail(full, ": ", error.what());
  }
  LINNET_CHECK(value.defined(), full, ": init made an undefined tensor, want f32 ", shape);
  LINNET_CHECK(value.shape() == shape && value.dtype() == Dtype::f32, full, ": init made ", value.dtype(), " ",
               value.shape(), ", want f32 ", shape);
  if (value.owners() > 1) value = value.clone();
  Variable made = Variable::leaf(std::move(value), full);
  parameters_.emplace_back(name, made);
  return made;
}

Tensor& Module::buffer(const std::string& name, Tensor value) {
  check_name(name);
  LINNET_CHECK(value.defined(), path_of(name), ": a buffer wants a tensor, this one is undefined");
  return buffers_.emplace_back(name, std::move(value)).second;
}

Variable Module::tie(const std::string& name, Variable parameter) {
  check_name(name);
  LINNET_CHECK(parameter.defined(), path_of(name), ": tied to an undefined parameter");
  parameters_.emplace_back(name, parameter);
  return parameter;
}

std::vector<std::pair<std::string, const Module*>> Module::modules() const {
  std::vector<std::pair<std::string, const Module*>> all, open{{"", this}};
  while (!open.empty()) {
    auto [name, module] = open.back();
    open.pop_back();
    for (auto child = module->children_.rbegin(); child != module->children_.rend(); ++child) {
      open.emplace_back(join(name, (*child)->name_), *child);
    }
    all.emplace_back(std::move(name), module);
  }
  return all;
}

std::vector<std::pair<std::string, Variable>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Variable>> all;
  std::set<const void*> seen;
  for (const auto& [prefix, module] : modules()) {
    for (const auto& [name, value] : module->parameters_) {
      if (seen.insert(&value.state()).second) all.emplace_back(join(prefix, name), value);
    }
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> Module::tied_names() const {
  std::vector<std::pair<std::string, std::string>> all;
  std::vector<std::pair<std::string, Variable>> first;
  for (const auto& [prefix, module] : modules()) {
    for (const auto& [name, value] : module->parameters_) {
      const auto same = [&v = value](const auto& other) { return other.second.same_as(v); };
      const auto found = std::find_if(first.begin(), first.end(), same);
      if (found == first.end()) {
        first.emplace_back(join(prefix, name), value);
      } else {
        all.emplace_back(join(prefix, name), found->first);
      }
    }
  }
  return all;
}

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> all;
  for (auto& [name, value] : named_parameters()) all.push_back(value);
  return all;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  std::vector<std::pair<std::string, Tensor>> all;
  for (const auto& [prefix, module] : modules()) {
    for (const auto& [name, value] : module->buffers_) all.emplace_back(join(prefix, name), value);
  }
  return all;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Variable& p : parameters()) count += p.numel();
  return count;
}

void Module::set_requires_grad(bool on) {
  for (Variable& p : parameters()) p.set_requires_grad(on);
}

void Module::clear_grads() {
  for (Variable& p : parameters()) p.clear_grad();
}

}  // namespace linnet::nn
