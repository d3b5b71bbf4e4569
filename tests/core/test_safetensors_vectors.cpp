// safetensors files that other programs wrote.
#include <doctest/doctest.h>

#include <algorithm>

#include "linnet/core/safetensors.h"
#include "support/vectors.h"

using namespace linnet;

TEST_CASE("files from the wild load with the shapes that their headers name") {
  auto dir = test_support::vectors_dir_or_say("safetensors vectors");
  if (!dir) return;
  StateDict voices = load_safetensors(*dir / "safetensors/voices.safetensors");
  CHECK(voices.get("tokens").shape() == Shape{1, 982, 33});
  CHECK(voices.get("tokens").dtype() == Dtype::i32);
  CHECK(voices.get("mask").shape() == Shape{1, 982, 33});
  CHECK(voices.get("mask").dtype() == Dtype::u8);
  StateDict codes = load_safetensors(*dir / "safetensors/jfk-codes.safetensors");
  CHECK(codes.get("codes").shape() == Shape{1, 2, 828});
  // Each value against the file's bytes: little-endian I64 after the header.
  std::string file = test_support::read_file(*dir / "safetensors/jfk-codes.safetensors");
  std::vector<int32_t> values = codes.get("codes").to_vector<int32_t>();
  std::vector<int64_t> wide(values.size());
  std::memcpy(wide.data(), file.data() + file.size() - wide.size() * 8, wide.size() * 8);
  CHECK(std::equal(values.begin(), values.end(), wide.begin()));
  CHECK(*std::max_element(values.begin(), values.end()) > 0);
}
