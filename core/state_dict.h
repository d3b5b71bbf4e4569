// StateDict: an ordered list of names with tensors, and of names with strings; what modules, optimizers, schedules,
// generators and loaders give and take, and what a checkpoint holds.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "linnet/core/tensor.h"

namespace linnet {

class StateDict {
 public:
  /// Adds an entry, which shares the tensor's memory; throws where the name is there already or the tensor is
  /// undefined.
  void set(const std::string& name, Tensor value);
  void set_text(const std::string& name, std::string value);
  void set_number(const std::string& name, double value);  ///< kept as text that reads back to the same double
  void set_integer(const std::string& name, uint64_t value);

  bool has(const std::string& name) const;
  bool has_text(const std::string& name) const;
  const Tensor& get(const std::string& name) const&;  ///< throws, naming it, where it is missing
  const std::string& text(const std::string& name) const&;
  double number(const std::string& name) const;  ///< throws, too, where the text is not a number
  uint64_t integer(const std::string& name) const;

  const std::vector<std::pair<std::string, Tensor>>& tensors() const& { return tensors_; }
  const std::vector<std::pair<std::string, std::string>>& texts() const& { return texts_; }

  // Of a temporary, such as load_safetensors(path).get("weight"), a copy: nothing dangles.
  Tensor get(const std::string& name) && { return std::as_const(*this).get(name); }
  std::string text(const std::string& name) && { return std::as_const(*this).text(name); }
  std::vector<std::pair<std::string, Tensor>> tensors() && { return std::move(tensors_); }
  std::vector<std::pair<std::string, std::string>> texts() && { return std::move(texts_); }

  /// All of part, each name with "prefix." before it. Throws, and changes nothing, where a name is there already.
  void add(const std::string& prefix, const StateDict& part);
  StateDict part(const std::string& prefix) const;  ///< all whose name begins with "prefix.", without it
  StateDict clone() const;  ///< the same in new memory: a snapshot that later writes leave alone

 private:
  std::vector<std::pair<std::string, Tensor>> tensors_;
  std::vector<std::pair<std::string, std::string>> texts_;
  std::map<std::string, size_t> tensor_at_, text_at_;
};

}  // namespace linnet
