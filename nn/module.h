// Module: a part of a model that has a name, parameters, buffers and parts of its own.
#pragma once
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "linnet/autograd/variable.h"
#include "linnet/core/state_dict.h"
#include "linnet/nn/init.h"
#include "linnet/nn/required.h"

namespace linnet::nn {

struct LoadOptions {
  bool strict = true;  ///< missing and unexpected names are errors; wrong shapes and dtypes always are
};

/// What load_state_dict passed over; both empty where it was strict.
struct LoadReport {
  std::vector<std::string> missing, unexpected;
};

/// A module registers itself with its parent where it is declared, which is why it has no other constructor and cannot
/// be copied or moved:
///
///     struct Net : nn::Model {
///       nn::Linear head{*this, "head", {.in = 64, .out = 16}};
///       Variable operator()(const Variable& x) const { return head(x); }
///     };
///
/// There is no virtual forward: a call operator has whatever signature fits.
class Module {
 public:
  /// Throws where the name is empty, has a dot in it, or is taken in `parent`.
  Module(Module& parent, std::string name);
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  std::string path() const;   ///< dotted, from the root; empty for the root
  std::string kind() const;   ///< its class, as in "Linear"
  std::string label() const;  ///< for messages: "Linear blocks.0.out"
  const std::vector<Module*>& children() const { return children_; }
  /// This module and all below it, parents first, with names that count from here; its own is empty.
  std::vector<std::pair<std::string, const Module*>> modules() const;

  // Names count from this module. A tied parameter is listed once, under the name where it was made.
  std::vector<Variable> parameters() const;
  std::vector<std::pair<std::string, Variable>> named_parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  /// Second names of tied parameters, each with the name that named_parameters() has for it.
  std::vector<std::pair<std::string, std::string>> tied_names() const;
  int64_t parameter_count() const;  ///< elements, tied ones once

  void set_requires_grad(bool on);  ///< false freezes the parameters here and below
  void clear_grads();
  void to(Device device);
  void to(Dtype dtype);  ///< f32 or f64: parameters, their gradients and floating buffers

  /// A copy of all parameters and buffers; of a tied parameter once, and a text says which name stands for which.
  StateDict state_dict() const;
  /// Copies the values into the parameters and buffers; f32 and f64 are converted. A tied parameter may come under any
  /// of its names, with one value. Throws, listing all that is missing, unexpected and misshapen; then nothing has
  /// changed.
  LoadReport load_state_dict(const StateDict& state, const LoadOptions& options = {});

 protected:
  /// A new f32 parameter, drawn by `init` from Generator{default_generator().seed, stream_of(dotted name), 0}. Its
  /// memory is its own: a tensor that init keeps a handle to is copied.
  Variable parameter(const std::string& name, const Shape& shape, const Init& init);
  /// A tensor that is saved and moved with the module but gets no gradient. The reference stays good.
  Tensor& buffer(const std::string& name, Tensor value);
  /// Uses a parameter that another module made under a second name; returns it.
  Variable tie(const std::string& name, Variable parameter);
  /// What f() gives; the message of an Error then begins with this module's label.
  template <class F>
  auto labelled(const F& f) const {
    try {
      return f();
    } catch (const Error& error) {
      fail(label(), ": ", error.what());
    }
  }

 private:
  friend class Model;
  Module(Module* parent, std::string name);  // a root where there is no parent

  void check_name(const std::string& name) const;
  std::string path_of(const std::string& name) const;

  std::string name_;
  Module* parent_ = nullptr;
  std::vector<Module*> children_;
  std::vector<std::pair<std::string, Variable>> parameters_;
  std::deque<std::pair<std::string, Tensor>> buffers_;
};

/// A module that may stand alone, as a root, and is then made without a parent.
class Model : public Module {
 public:
  Model() : Module(nullptr, {}) {}
  Model(Module& parent, std::string name) : Module(&parent, std::move(name)) {}

 protected:
  /// For a model with both constructors: no parent makes a root.
  Model(Module* parent, std::string name) : Module(parent, std::move(name)) {}
};

namespace detail {
/// Calls f(layer) for each Layer in `module`, itself included, always in the same order.
template <class Layer, class F>
void for_each(Module& module, const F& f) {
  std::vector<Module*> all{&module};
  for (size_t i = 0; i < all.size(); ++i) {
    if (auto* layer = dynamic_cast<Layer*>(all[i])) f(*layer);
    all.insert(all.end(), all[i]->children().begin(), all[i]->children().end());
  }
}
}  // namespace detail

}  // namespace linnet::nn
