#include "linnet/core/state_dict.h"

#include <charconv>

namespace linnet {

namespace {

template <class Number>
std::string to_text(Number value) {
  char digits[64];
  auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

template <class Number>
Number from_text(const std::string& name, const std::string& text, const char* wanted) {
  Number value{};
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  LINNET_CHECK(fault == std::errc() && end == text.data() + text.size(), "state_dict: \"", name, "\" is \"", text,
               "\", ", wanted, " wanted");
  return value;
}

}  // namespace

void StateDict::set(const std::string& name, Tensor value) {
  LINNET_CHECK(value.defined(), "state_dict: the tensor given for \"", name, "\" is undefined");
  LINNET_CHECK(tensor_at_.emplace(name, tensors_.size()).second, "state_dict: tensor \"", name, "\" is there already");
  tensors_.emplace_back(name, std::move(value));
}

void StateDict::set_text(const std::string& name, std::string value) {
  LINNET_CHECK(text_at_.emplace(name, texts_.size()).second, "state_dict: text \"", name, "\" is there already");
  texts_.emplace_back(name, std::move(value));
}

void StateDict::set_number(const std::string& name, double value) { set_text(name, to_text(value)); }
void StateDict::set_integer(const std::string& name, uint64_t value) { set_text(name, to_text(value)); }

bool StateDict::has(const std::string& name) const { return tensor_at_.count(name) > 0; }
bool StateDict::has_text(const std::string& name) const { return text_at_.count(name) > 0; }

const Tensor& StateDict::get(const std::string& name) const& {
  auto at = tensor_at_.find(name);
  LINNET_CHECK(at != tensor_at_.end(), "state_dict: no tensor \"", name, "\" among ", tensors_.size());
  return tensors_[at->second].second;
}

const std::string& StateDict::text(const std::string& name) const& {
  auto at = text_at_.find(name);
  LINNET_CHECK(at != text_at_.end(), "state_dict: no text \"", name, "\" among ", texts_.size());
  return texts_[at->second].second;
}

double StateDict::number(const std::string& name) const { return from_text<double>(name, text(name), "a number"); }
uint64_t StateDict::integer(const std::string& name) const {
  return from_text<uint64_t>(name, text(name), "an integer from 0 to 2^64-1");
}

void StateDict::add(const std::string& prefix, const StateDict& part) {
  StateDict sum = *this;  // handles only
  for (const auto& [name, tensor] : part.tensors_) sum.set(prefix + "." + name, tensor);
  for (const auto& [name, text] : part.texts_) sum.set_text(prefix + "." + name, text);
  *this = std::move(sum);
}

StateDict StateDict::part(const std::string& prefix) const {
  const std::string start = prefix + ".";
  StateDict result;
  for (const auto& [name, tensor] : tensors_)
    if (name.compare(0, start.size(), start) == 0) result.set(name.substr(start.size()), tensor);
  for (const auto& [name, text] : texts_)
    if (name.compare(0, start.size(), start) == 0) result.set_text(name.substr(start.size()), text);
  return result;
}

StateDict StateDict::clone() const {
  StateDict result = *this;
  for (auto& entry : result.tensors_) entry.second = entry.second.clone();
  return result;
}

}  // namespace linnet
