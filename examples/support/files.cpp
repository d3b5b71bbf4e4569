#include "support/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "linnet/core/atomic_file.h"
#include "linnet/core/error.h"

namespace example {

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) linnet::fail(path, ": cannot be read: ", std::strerror(errno));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) linnet::fail(path, ": cannot be read: ", std::strerror(errno));
  return text;
}

Json read_json(const std::string& path) {
  try {
    return Json::parse(read_text(path));
  } catch (const nlohmann::json::exception& error) {
    linnet::fail(path, ": not the JSON that was written there: ", error.what());
  }
}

void write_json(const std::string& path, const Json& value) { linnet::write_file(path, value.dump(2) + "\n"); }

}  // namespace example
