// Small files, read and written whole.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace example {

using Json = nlohmann::ordered_json;

std::string read_text(const std::string& path);  ///< throws Error, naming the file
Json read_json(const std::string& path);
void write_json(const std::string& path, const Json& value);  ///< a crash leaves the old file or the new one

}  // namespace example
