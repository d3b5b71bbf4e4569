// ONNX backend node tests for every operator that linnet has, forward, with ONNX's own tolerance. What runs is pinned
// in onnx_cases.txt; what does not is printed with its reason.
#include <doctest/doctest.h>

#include <cstdio>

#include "vectors/onnx.h"
#include "vectors/onnx_elementwise.h"
#include "vectors/onnx_layers.h"
#include "vectors/onnx_shapes.h"

using namespace test_support;

TEST_CASE("ONNX backend node tests") {
  const auto dir = vectors_dir_or_say("ONNX backend node tests");
  if (!dir) return;

  OnnxTable table;
  add_onnx_elementwise(table);
  add_onnx_reductions(table);
  add_onnx_shapes(table);
  add_onnx_layers(table);

  std::set<std::string> pinned, ran;
  std::istringstream list(read_file(std::filesystem::path(LINNET_SOURCE_DIR) / "tests/vectors/onnx_cases.txt"));
  for (std::string name; std::getline(list, name);) pinned.insert(name);

  std::map<std::string, std::vector<std::string>> left_out;  // reason -> cases
  const nlohmann::json manifest = read_json(*dir / "onnx" / "manifest.json");
  for (const nlohmann::json& entry : manifest) {
    const std::string name = entry["case"], op = entry["op"];
    INFO(name);
    try {
      if (!table.contains(op)) throw NotApplicable("no operator " + op);
      const OnnxCase c = read_onnx_case(*dir / "onnx", entry);
      const std::vector<Tensor> got = table.at(op)(c);
      REQUIRE(got.size() >= 1);
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK_EQ(onnx_difference(got[i], c.wanted.at(i)), "");
      }
      ran.insert(name);
    } catch (const NotApplicable& reason) {
      left_out[reason.what()].push_back(name);
    } catch (const std::exception& error) {
      FAIL_CHECK(error.what());
    }
    CHECK_MESSAGE(ran.contains(name) == pinned.contains(name), "onnx_cases.txt must list just the cases that run");
  }
  for (const std::string& name : pinned) CHECK_MESSAGE(ran.contains(name), name, " is pinned and did not run");

  std::printf("ONNX: %zu of %zu cases ran. Not applicable:\n", ran.size(), manifest.size());
  for (const auto& [reason, names] : left_out) {
    std::printf("  %s (%zu):", reason.c_str(), names.size());
    for (const std::string& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
  }
}
