#include "linnet/core/cuda_values.h"

#include <limits>
#include <type_traits>

#include "linnet/core/cuda_stream.h"

namespace linnet::cuda {
namespace {

using Place = unsigned long long;  // what atomicMin takes
constexpr Place kNone = ~Place{0};

/// The first place of what a kernel looks for.
class FirstPlace {
 public:
  FirstPlace() : memory_(1) { check(cudaMemsetAsync(memory_.data(), 0xff, sizeof(Place), stream()), "memset"); }
  Place* data() { return memory_.data(); }
  int64_t read() {
    const Place place = fetch(memory_.data());
    return place == kNone ? -1 : static_cast<int64_t>(place);
  }

 private:
  Scratch<Place> memory_;
};

template <class To, class From>
void convert_all(int64_t n, const From* x, To* y) {
  each(n, [=] __device__(int64_t i) { y[i] = static_cast<To>(x[i]); });
}

/// Cut towards zero, with the first place that does not fit.
template <class To, class From>
int64_t convert_checked(int64_t n, const From* x, To* y) {
  FirstPlace bad;
  Place* const place = bad.data();
  const double low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
  each(n, [=] __device__(int64_t i) {
    const double whole = trunc(static_cast<double>(x[i]));
    const bool fits = whole >= low && whole <= high;
    y[i] = fits ? static_cast<To>(x[i]) : To(0);
    if (!fits) atomicMin(place, static_cast<Place>(i));
  });
  return bad.read();
}

template <class T>
void fill_all(int64_t n, T* y, T value) {
  each(n, [=] __device__(int64_t i) { y[i] = value; });
}

}  // namespace

void fill(Dtype dtype, int64_t n, void* y, double value) {
  with_dtype(dtype, [&]<class T>() { fill_all(n, static_cast<T*>(y), static_cast<T>(value)); });
}

int64_t convert(Dtype from, Dtype to, int64_t n, const void* x, void* y) {
  return with_dtype(from, [&]<class From>() {
    return with_dtype(to, [&]<class To>() {
      constexpr bool always_fits = std::is_floating_point_v<To> || std::is_same_v<From, uint8_t>;
      if constexpr (always_fits) {
        convert_all(n, static_cast<const From*>(x), static_cast<To*>(y));
        return int64_t{-1};
      } else {
        return convert_checked(n, static_cast<const From*>(x), static_cast<To*>(y));
      }
    });
  });
}

int64_t first_outside(int64_t n, const int32_t* index, int64_t rows) {
  FirstPlace bad;
  Place* const place = bad.data();
  each(n, [=] __device__(int64_t i) {
    if (index[i] < 0 || index[i] >= rows) atomicMin(place, static_cast<Place>(i));
  });
  return n ? bad.read() : -1;
}

}  // namespace linnet::cuda
