// ONNX backend node tests: one case of the manifest, and how results are compared with it.
#pragma once
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "linnet/autograd/variable.h"
#include "support/vectors.h"

namespace test_support {

using linnet::Dtype;
using linnet::Shape;
using linnet::Tensor;
using linnet::Variable;

/// Thrown where linnet does not have what a case asks for; the text is the reason that the test prints.
struct NotApplicable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct OnnxCase {
  std::string name, op;
  nlohmann::json attributes;
  std::vector<std::string> names;       // of the inputs, "" for one that is left out
  std::map<std::string, Tensor> given;  // int64 as i32, bool as u8
  std::vector<Tensor> wanted;

  bool has(size_t i) const { return i < names.size() && !names[i].empty(); }
  /// Input i, in the order of the operator's definition.
  const Tensor& in(size_t i) const { return given.at(names.at(i)); }
  /// Input i, which must be of floats: linnet computes with nothing else.
  Variable x(size_t i) const {
    if (!linnet::is_float(in(i).dtype())) throw NotApplicable("arithmetic on integers");
    return in(i);
  }
  std::vector<Variable> all() const {
    std::vector<Variable> list;
    for (size_t i = 0; i < names.size(); ++i) list.push_back(x(i));
    return list;
  }
  /// Input i as numbers: axes, sizes, starts.
  std::vector<int64_t> numbers(size_t i) const {
    const std::vector<int32_t> values = in(i).to_vector<int32_t>();
    return {values.begin(), values.end()};
  }
  int64_t integer(const char* key, int64_t otherwise) const { return attributes.value(key, otherwise); }
  double number(const char* key, double otherwise) const { return attributes.value(key, otherwise); }
  void refuse(bool asked, const char* reason) const {
    if (asked) throw NotApplicable(reason);
  }
};

/// What linnet gives for a case: its first outputs, at least one (linnet's ops return one value; masks, means and
/// scores that ONNX also lists are then left out of the comparison).
using OnnxRun = std::function<std::vector<Tensor>(const OnnxCase&)>;
using OnnxTable = std::map<std::string, OnnxRun>;

inline int64_t from_front(int64_t axis, int rank) { return axis < 0 ? axis + rank : axis; }

/// Throws NotApplicable, naming the dtype, where linnet has no such dtype: it has f32, f64, i32 and u8 (which stands
/// for bool). int64 is taken for indices, axes and shapes, as i32.
inline OnnxCase read_onnx_case(const std::filesystem::path& folder, const nlohmann::json& entry) {
  static const std::set<std::string> known = {"float32", "float64", "int32", "int64", "bool"};
  OnnxCase c{entry["case"], entry["op"], entry["attributes"], entry["inputs"], {}, {}};
  const nlohmann::json& set = entry["sets"][0];
  auto read = [&](const nlohmann::json& file) {
    const std::string dtype = file["dtype"];
    if (!known.contains(dtype)) throw NotApplicable("dtype " + dtype);
    return read_npy(folder / c.name / std::string(file["file"]));
  };
  for (const auto& file : set["inputs"]) c.given[file["name"]] = read(file);
  for (const auto& file : set["outputs"]) c.wanted.push_back(read(file));
  return c;
}

/// "" or what differs. Floats: |a - b| <= 1e-7 + 1e-3 |b|, ONNX's own tolerance, NaN and infinities equal themselves;
/// integers and masks: equal.
inline std::string onnx_difference(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape()))
    return "got " + std::string(name(got.dtype())) + " " + got.shape().str() + ", expected " + name(want.dtype()) +
           " " + want.shape().str();
  const std::vector<double> a = got.to(Dtype::f64).to_vector<double>(), b = want.to(Dtype::f64).to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool close = linnet::is_float(got.dtype()) ? std::abs(a[i] - b[i]) <= 1e-7 + 1e-3 * std::abs(b[i]) : false;
    if (close || a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    return "element " + std::to_string(i) + ": got " + std::to_string(a[i]) + ", expected " + std::to_string(b[i]);
  }
  return "";
}

}  // namespace test_support
