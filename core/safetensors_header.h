// The JSON header of a safetensors file, as text and as entries. Used by core/safetensors.cpp only.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "linnet/core/shape.h"

namespace linnet::detail {

/// One tensor of the file: bytes begin .. end-1 after the header.
struct SafetensorsEntry {
  std::string name, dtype;  // dtype as the file spells it: F32, I64, ...
  Shape shape;
  uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  // in the header's order
  std::vector<std::pair<std::string, std::string>> texts;
};

/// Throws Error, each message after `where`, for what is not JSON, nested too deep, given twice, missing, unknown, of
/// the wrong type, negative or too large. Does not compare entries with each other or with the file.
SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& json);

/// Throws Error where a name or text is not UTF-8, or a tensor's name is __metadata__.
std::string format_safetensors_header(const std::string& where, const SafetensorsHeader& header);

}  // namespace linnet::detail
