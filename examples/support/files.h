// Small files, read and written whole.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "linnet/core/error.h"

namespace example {

using Json = nlohmann::ordered_json;

std::string read_text(const std::string& path);  ///< throws Error, naming the file
/// f(), which works on what was read from the file: its Errors get the file's name in front.
template <class F>
auto naming(const std::string& path, F&& f) {
  try {
    return f();
  } catch (const linnet::Error& error) {
    linnet::fail(path, ": ", error.what());
  }
}
Json read_json(const std::string& path);
void write_json(const std::string& path, const Json& value);  ///< a crash leaves the old file or the new one

}  // namespace example
