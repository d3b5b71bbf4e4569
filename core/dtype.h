// Dtype and Device: what a tensor's elements are and where they lie.
#pragma once
#include <cstdint>
#include <iosfwd>

namespace linnet {

/// f32 for training, f64 for gradient checks, i32 for indices, u8 for masks.
enum class Dtype : uint8_t { f32, f64, i32, u8 };
enum class Device : uint8_t { cpu, cuda };

const char* name(Dtype dtype);
const char* name(Device device);
std::ostream& operator<<(std::ostream& out, Dtype dtype);
std::ostream& operator<<(std::ostream& out, Device device);
int64_t size_of(Dtype dtype);  ///< bytes an element
constexpr bool is_float(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f64; }

template <class T>
inline constexpr Dtype dtype_of = [] { static_assert(sizeof(T) == 0, "no Dtype for this type"); }();
template <>
inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <>
inline constexpr Dtype dtype_of<int32_t> = Dtype::i32;
template <>
inline constexpr Dtype dtype_of<uint8_t> = Dtype::u8;

/// Where the factories of Tensor put what they make, unless told: the CPU, or what LINNET_DEVICE=cpu|cuda says.
Device default_device();
/// Throws where there is no such device. Set it before the first tensor: what is there already stays where it is.
void set_default_device(Device device);

/// with_float("exp", dtype, [&]<class T>() { ... }): calls f with T = float or double; other dtypes are an error naming
/// the op.
template <class F>
decltype(auto) with_float(const char* op, Dtype dtype, F&& f);
/// The same over all four dtypes.
template <class F>
decltype(auto) with_dtype(Dtype dtype, F&& f);

[[noreturn]] void fail_not_float(const char* op, Dtype dtype);

template <class F>
decltype(auto) with_float(const char* op, Dtype dtype, F&& f) {
  if (dtype == Dtype::f32) return f.template operator()<float>();
  if (dtype == Dtype::f64) return f.template operator()<double>();
  fail_not_float(op, dtype);
}

template <class F>
decltype(auto) with_dtype(Dtype dtype, F&& f) {
  switch (dtype) {
    case Dtype::f32:
      return f.template operator()<float>();
    case Dtype::f64:
      return f.template operator()<double>();
    case Dtype::i32:
      return f.template operator()<int32_t>();
    case Dtype::u8:
      break;
  }
  return f.template operator()<uint8_t>();
}

}  // namespace linnet
