// Reference values made by make_reference.py: where they lie and what "agree to 1e-5" means.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "linnet/autograd/tape.h"
#include "linnet/core/safetensors.h"

namespace test_support {

inline linnet::StateDict load_reference(const std::string& file) {
  return linnet::load_safetensors(std::string(LINNET_SOURCE_DIR) + "/tests/parity/data/" + file);
}

/// The cases of an op or optimizer: "gelu" -> {"gelu.plain"}.
inline std::set<std::string> reference_cases(const linnet::StateDict& all, const std::string& op) {
  std::set<std::string> cases;
  for (const auto& [name, tensor] : all.tensors())
    if (name.starts_with(op + ".")) cases.insert(name.substr(0, name.rfind('.')));
  REQUIRE(!cases.empty());
  return cases;
}

inline double option(const linnet::StateDict& texts, const std::string& name, double otherwise) {
  return texts.has_text(name) ? texts.number(name) : otherwise;
}

/// max |a - b| <= 1e-5 max(floor, max |b|), and the shapes are equal. floor 1 is the usual sense; gradients, which are
/// smaller, take 0: the agreement is then relative to the largest of them.
inline void check_agree(const std::string& what, const linnet::Tensor& got, const linnet::Tensor& want,
                        double floor = 1) {
  INFO(what);
  REQUIRE(got.defined());
  REQUIRE(got.shape() == want.shape());
  const std::vector<float> a = got.to_vector<float>(), b = want.to_vector<float>();
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    difference = std::isnan(d) ? d : std::fmax(difference, d);
    if (std::isnan(d)) break;
    largest = std::fmax(largest, std::abs(static_cast<double>(b[i])));
  }
  CAPTURE(difference);
  CAPTURE(largest);
  CHECK(difference <= 1e-5 * std::fmax(floor, largest));
}

}  // namespace test_support
