#include "linnet/core/dtype.h"

#include <ostream>

#include "linnet/core/error.h"

namespace linnet {

const char* name(Dtype dtype) {
  constexpr const char* names[] = {"f32", "f64", "i32", "u8"};
  return names[static_cast<int>(dtype)];
}

const char* name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

std::ostream& operator<<(std::ostream& out, Dtype dtype) { return out << name(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << name(device); }

int64_t size_of(Dtype dtype) {
  return with_dtype(dtype, []<class T>() { return static_cast<int64_t>(sizeof(T)); });
}

void fail_not_float(const char* op, Dtype dtype) { fail(op, ": dtype ", dtype, " given, f32 or f64 wanted"); }

}  // namespace linnet
