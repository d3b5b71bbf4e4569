#include "linnet/core/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "linnet/core/error.h"

namespace linnet::detail {

namespace {

using nlohmann::json;
constexpr const char* kMetadata = "__metadata__";

/// A name from a file in a message: without control characters, and not longer than a line.
std::string quoted(const std::string& name) {
  std::string shown = name.substr(0, 80);
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return "\"" + shown + (name.size() > 80 ? "..." : "") + "\"";
}

/// Receives the parser's events: no document is built, so neither depth nor size of a hostile header costs memory.
/// Depth 1 is the header's object, 2 a tensor's or the metadata's object, 3 an array of numbers.
class Reader {
 public:
  Reader(const std::string& where, SafetensorsHeader& header) : where_(where), header_(header) {}

  bool start_object(size_t) {
    if (depth_ > 1) refuse("an object where none belongs");
    if (++depth_ == 2) {
      fields_.clear();
      in_metadata_ = name_ == kMetadata;
      if (!in_metadata_) header_.tensors.push_back({name_, {}, {}, 0, 0});
    }
    return true;
  }
  bool key(std::string& key) {
    std::set<std::string>& seen = depth_ == 1 ? names_ : fields_;
    if (depth_ == 1) name_ = key;
    LINNET_CHECK(seen.insert(key).second, where_, depth_ == 1 ? "name " : "field ", quoted(key), " is given twice");
    field_ = key;
    return true;
  }
  bool end_object() {
    if (depth_-- == 2 && !in_metadata_)
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.count(field)) refuse(std::string("no ") + field);
    return true;
  }
  bool string(std::string& value) {
    if (depth_ == 2 && in_metadata_)
      header_.texts.emplace_back(field_, value);
    else if (depth_ == 2 && field_ == "dtype")
      header_.tensors.back().dtype = value;
    else
      refuse("a string where none belongs");
    return true;
  }
  bool start_array(size_t) {
    if (depth_ != 2 || in_metadata_ || (field_ != "shape" && field_ != "data_offsets"))
      refuse("an array where none belongs");
    ++depth_;
    count_ = 0;
    return true;
  }
  bool end_array() {
    --depth_;
    if (field_ == "data_offsets" && count_ != 2) refuse("data_offsets are not two numbers");
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (depth_ != 3) refuse("a number where none belongs");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      refuse(field_ + " holds a number too large");
    SafetensorsEntry& entry = header_.tensors.back();
    if (field_ == "data_offsets") {
      if (count_ < 2) (count_ == 0 ? entry.begin : entry.end) = value;
    } else {
      try {
        entry.shape.push_back(static_cast<int64_t>(value));
      } catch (const Error& error) {
        refuse(error.what());
      }
    }
    ++count_;
    return true;
  }
  bool number_integer(int64_t value) { refuse(field_ + " holds " + std::to_string(value)); }
  bool number_float(double, const std::string&) { refuse(field_ + " holds a number that is no 64-bit integer"); }
  bool null() { refuse("null where it does not belong"); }
  bool boolean(bool) { refuse("a boolean where none belongs"); }
  bool binary(json::binary_t&) { refuse("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    fail(where_, "is not JSON (byte ", position, ")");
  }

 private:
  [[noreturn]] void refuse(const std::string& fault) const {
    if (depth_ == 0 || name_.empty()) fail(where_, fault);
    fail(where_, quoted(name_), ": ", fault);
  }

  const std::string& where_;
  SafetensorsHeader& header_;
  int depth_ = 0;
  bool in_metadata_ = false;
  size_t count_ = 0;
  std::string name_, field_;
  std::set<std::string> names_, fields_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& where, const std::string& text) {
  // The parser takes a zero byte for the end of its input.
  LINNET_CHECK(!text.empty() && text[0] == '{' && text.find('\0') == std::string::npos, where, "is not a JSON object");
  SafetensorsHeader header;
  Reader reader(where, header);
  json::sax_parse(text, &reader);
  return header;
}

std::string format_safetensors_header(const std::string& where, const SafetensorsHeader& header) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, text] : header.texts) object[kMetadata][name] = text;
  for (const SafetensorsEntry& entry : header.tensors) {
    LINNET_CHECK(entry.name != kMetadata, where, "a tensor cannot be named ", kMetadata);
    object[entry.name] = {{"dtype", entry.dtype},
                          {"shape", std::vector<int64_t>(entry.shape.begin(), entry.shape.end())},
                          {"data_offsets", {entry.begin, entry.end}}};
  }
  try {
    return object.dump();
  } catch (const json::exception&) {
    fail(where, "a name or text is not UTF-8");
  }
}

}  // namespace linnet::detail
