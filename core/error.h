// Error: the one exception type of linnet, and the check that throws it.
#pragma once
#include <sstream>
#include <stdexcept>
#include <string>

namespace linnet {

/// Thrown for every fault. The message reads `op: what was given, what is wanted`, with every shape.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws an Error whose message is the parts written one after the other.
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream message;
  message.precision(17);
  (message << ... << parts);
  throw Error(message.str());
}

}  // namespace linnet

/// LINNET_CHECK(x.rank() == 2, "matmul: ", x.shape(), " has no rows and columns"): the message is built only on
/// failure.
#define LINNET_CHECK(condition, ...)               \
  do {                                             \
    if (!(condition)) ::linnet::fail(__VA_ARGS__); \
  } while (false)
