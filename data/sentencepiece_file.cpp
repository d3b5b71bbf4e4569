#include "linnet/data/sentencepiece_file.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "linnet/data/utf8.h"

namespace linnet::data {

namespace {

/// One field of a protobuf message: its number and, by wire type, its bytes (0: none for a number).
struct Field {
  uint64_t number;
  int type;
  std::string_view bytes;
};

std::optional<uint64_t> take_varint(std::string_view& from) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from[0]);
    from.remove_prefix(1);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Field> take_field(std::string_view& from) {
  const auto tag = take_varint(from);
  if (!tag) return std::nullopt;
  Field field{*tag >> 3, static_cast<int>(*tag & 7), {}};
  uint64_t bytes = 0;
  if (field.type == 0) {
    if (!take_varint(from)) return std::nullopt;
  } else if (field.type == 1 || field.type == 5) {
    bytes = field.type == 1 ? 8 : 4;
  } else if (field.type == 2) {
    const auto length = take_varint(from);
    if (!length) return std::nullopt;
    bytes = *length;
  } else {
    return std::nullopt;  // groups, which the format does not use
  }
  if (bytes > from.size()) return std::nullopt;
  field.bytes = from.substr(0, bytes);
  from.remove_prefix(bytes);
  return field;
}

/// Calls f with each field; false where the bytes are no message, or f says so.
template <class F>
bool for_each_field(std::string_view message, F&& f) {
  while (!message.empty()) {
    const auto field = take_field(message);
    if (!field || !f(*field)) return false;
  }
  return true;
}

/// ModelProto.SentencePiece: piece = 1, score = 2, type = 3.
bool good_piece(std::string_view message) {
  return for_each_field(message, [](const Field& field) {
    float score = 0;
    if (field.number == 2 && field.type == 5) std::memcpy(&score, field.bytes.data(), sizeof score);
    return std::isfinite(score);
  });
}

/// The size of a Darts-clone double array in bytes, u32; the array; then the strings that its values point into, each
/// ended by a zero byte. In the array a unit holds either a value (bit 31) or a label, a bit 8 for "a value follows"
/// and the distance to its children: unit i's child of byte c is unit i ^ distance ^ c.
bool good_charsmap(std::string_view map) {
  if (map.empty()) return true;
  uint32_t bytes = 0;
  if (map.size() < sizeof bytes) return false;
  std::memcpy(&bytes, map.data(), sizeof bytes);
  map.remove_prefix(sizeof bytes);
  if (bytes % 1024 != 0 || bytes == 0 || bytes >= map.size()) return false;  // whole blocks of 256 units
  const std::string_view strings = map.substr(bytes);
  if (strings.back() != 0 || invalid_utf8_at(strings) >= 0) return false;
  const uint64_t units = bytes / 4;
  const auto unit = [&](uint64_t i) {
    uint32_t value = 0;
    std::memcpy(&value, map.data() + 4 * i, sizeof value);
    return value;
  };
  for (uint64_t i = 0; i < units; ++i) {
    if (unit(i) >> 31) continue;  // a value: checked from the unit that says it follows
    const uint64_t children = i ^ uint64_t(unit(i) >> 10) << ((unit(i) & 0x200) >> 6);
    if ((children | 0xFF) >= units) return false;
    if ((unit(i) & 0x100) == 0) continue;
    const uint64_t value = unit(children) & 0x7FFFFFFF;  // read as one whatever bit 31 says
    if (value >= strings.size() || (strings[value] & 0xC0) == 0x80) return false;
  }
  return true;
}

}  // namespace

std::string sentencepiece_fault(std::string_view model) {
  bool pieces = true, map = true;
  // ModelProto: pieces = 1, normalizer_spec = 3, denormalizer_spec = 5; NormalizerSpec: precompiled_charsmap = 2.
  const bool message = for_each_field(model, [&](const Field& field) {
    if (field.type != 2) return true;
    if (field.number == 1) return pieces = pieces && good_piece(field.bytes), true;
    if (field.number != 3 && field.number != 5) return true;
    return for_each_field(field.bytes, [&](const Field& inner) {
      if (inner.number == 2 && inner.type == 2) map = map && good_charsmap(inner.bytes);
      return true;
    });
  });
  if (!message) return "is no SentencePiece model, or cut off";
  if (!pieces) return "has a damaged piece or one whose score is not finite";
  if (!map) return "has a damaged normalisation table";
  return "";
}

}  // namespace linnet::data
