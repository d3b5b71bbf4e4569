#include "linnet/core/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <type_traits>

#include "linnet/core/cuda_device.h"
#include "linnet/core/random.h"

namespace linnet {
namespace {

/// x as a To, cut towards zero where that is an integer. Bounds are compared as doubles, which hold each of them; NaN
/// fits in none.
template <class To, class From>
To converted(const char* op, From x) {
  if constexpr (std::is_integral_v<To>) {
    const double whole = std::trunc(static_cast<double>(x));
    LINNET_CHECK(whole >= std::numeric_limits<To>::min() && whole <= std::numeric_limits<To>::max(), op, ": the value ",
                 +x, " does not fit ", dtype_of<To>);
  }
  return static_cast<To>(x);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, int64_t bytes) {
  if (bytes == 0) return;
  if (to_device == Device::cuda || from_device == Device::cuda)
    cuda_device().copy(to, to_device, from, from_device, bytes);
  else
    std::memmove(to, from, static_cast<size_t>(bytes));
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, Dtype dtype, Device device) {
  Tensor t;
  t.shape_ = shape;
  t.numel_ = shape.numel();
  t.dtype_ = dtype;
  t.storage_ = std::make_shared<Storage>(t.bytes(), device);
  return t;
}

Tensor Tensor::zeros(const Shape& shape, Dtype dtype, Device device) { return full(shape, 0, dtype, device); }

Tensor Tensor::full(const Shape& shape, double value, Dtype dtype, Device device) {
  Tensor t = empty(shape, dtype, device);
  t.fill(value);
  return t;
}

Tensor Tensor::arange(int64_t n, Dtype dtype, Device device) {
  LINNET_CHECK(n >= 0, "arange: ", n, " given, 0 or more wanted");
  Tensor t = empty({n}, dtype, Device::cpu);
  with_dtype(dtype, [&]<class T>() {
    T* y = t.mutable_data<T>();
    for (int64_t i = 0; i < n; ++i) y[i] = converted<T>("arange", i);
  });
  return t.to(device);
}

template <class T>
Tensor Tensor::from(std::span<const T> values, const Shape& shape, Device device) {
  LINNET_CHECK(static_cast<int64_t>(values.size()) == shape.numel(), "tensor: ", values.size(), " values for shape ",
               shape, ", which has ", shape.numel());
  Tensor t = empty(shape, dtype_of<T>, device);
  copy_bytes(t.mutable_data<T>(), device, values.data(), Device::cpu, t.bytes());
  return t;
}
template Tensor Tensor::from(std::span<const float>, const Shape&, Device);
template Tensor Tensor::from(std::span<const double>, const Shape&, Device);
template Tensor Tensor::from(std::span<const int32_t>, const Shape&, Device);
template Tensor Tensor::from(std::span<const uint8_t>, const Shape&, Device);

Tensor Tensor::uniform(const Shape& shape, double low, double high, Dtype dtype, Device device) {
  return default_generator().uniform(shape, low, high, dtype, device);
}

Tensor Tensor::normal(const Shape& shape, double mean, double std, Dtype dtype, Device device) {
  return default_generator().normal(shape, mean, std, dtype, device);
}

Device Tensor::device() const {
  check_storage();
  return storage_->device();
}

void Tensor::check_storage() const {
  LINNET_CHECK(storage_, "tensor: undefined; make it with a factory such as Tensor::zeros");
}

void Tensor::check_access(Dtype wanted) const {
  check_storage();
  LINNET_CHECK(wanted == dtype_, "tensor: data of ", dtype_, " read as ", wanted);
}

double Tensor::item() const {
  LINNET_CHECK(storage_ && numel_ == 1, "item: shape ", shape_, " given, one element wanted");
  Tensor host = to(Device::cpu);
  return with_dtype(dtype_, [&]<class T>() { return static_cast<double>(*host.data<T>()); });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_access(dtype_of<T>);
  Tensor host = to(Device::cpu);
  return {host.data<T>(), host.data<T>() + numel_};
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<int32_t> Tensor::to_vector() const;
template std::vector<uint8_t> Tensor::to_vector() const;

Tensor Tensor::reshape(const Shape& shape) const {
  LINNET_CHECK(storage_, "reshape: the tensor is undefined");
  LINNET_CHECK(shape.numel() == numel_, "reshape: ", shape_, " has ", numel_, " elements but ", shape, " has ",
               shape.numel());
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::reshape(std::initializer_list<int64_t> sizes) const {
  int64_t known = 1;
  int open = -1, i = 0;
  int64_t resolved[kMaxRank];
  LINNET_CHECK(sizes.size() <= kMaxRank, "reshape: more than ", kMaxRank, " axes");
  for (int64_t size : sizes) {
    if (size == -1) {
      LINNET_CHECK(open < 0, "reshape: more than one size is -1");
      open = i;
    } else {
      LINNET_CHECK(size >= 0, "reshape: size ", size, " of axis ", i, " is negative");
      LINNET_CHECK(!__builtin_mul_overflow(known, size, &known), "reshape: the sizes are too large");
    }
    resolved[i++] = size;
  }
  if (open >= 0) {
    LINNET_CHECK(known > 0 && numel_ % known == 0, "reshape: ", shape_, " has ", numel_,
                 " elements, which do not divide by ", known, " to fill the -1");
    resolved[open] = numel_ / known;
  }
  return reshape(Shape(std::span<const int64_t>(resolved, sizes.size())));
}

Tensor Tensor::slice(int64_t begin, int64_t end) const {
  LINNET_CHECK(rank() >= 1, "slice: a scalar has no axis");
  LINNET_CHECK(0 <= begin && begin <= end && end <= shape_[0], "slice: rows ", begin, " to ", end, " of ", shape_);
  Tensor t = *this;
  t.shape_.set(0, end - begin);
  t.numel_ = t.shape_.numel();
  if (shape_[0] > 0) t.offset_ += begin * (numel_ / shape_[0]) * size_of(dtype_);
  return t;
}

Tensor Tensor::clone() const {
  if (!storage_) return {};
  Tensor t = empty(shape_, dtype_, device());
  t.copy_from(*this);
  return t;
}

Tensor Tensor::to(Dtype dtype) const {
  if (!storage_ || dtype == dtype_) return *this;
  Tensor t = empty(shape_, dtype, device());
  if (device() == Device::cuda) {
    const int64_t bad = cuda_device().convert(dtype_, dtype, numel_, raw(), t.mutable_raw());
    if (bad >= 0) (void)reshape(Shape{numel_}).slice(bad, bad + 1).to(Device::cpu).to(dtype);  // throws
    return t;
  }
  with_dtype(dtype_, [&]<class From>() {
    with_dtype(dtype, [&]<class To>() {
      const From* x = data<From>();
      To* y = t.mutable_data<To>();
      for (int64_t i = 0; i < numel_; ++i) y[i] = converted<To>("to", x[i]);
    });
  });
  return t;
}

Tensor Tensor::to(Device target) const {
  if (!storage_ || target == device()) return *this;
  Tensor t = empty(shape_, dtype_, target);
  t.copy_from(*this);
  return t;
}

void Tensor::copy_from(const Tensor& source) {
  LINNET_CHECK(storage_ && source.storage_, "copy_from: a tensor is undefined");
  LINNET_CHECK(shape_ == source.shape_ && dtype_ == source.dtype_, "copy_from: ", source.dtype_, " ", source.shape_,
               " given, ", dtype_, " ", shape_, " wanted");
  copy_bytes(mutable_raw(), device(), source.raw(), source.device(), bytes());
}

void Tensor::fill(double value) {
  with_dtype(dtype_, [&]<class T>() {
    const T each = converted<T>("fill", value);
    if (device() == Device::cuda)
      cuda_device().fill(dtype_, numel_, mutable_raw(), static_cast<double>(each));
    else
      std::fill_n(mutable_data<T>(), numel_, each);
  });
}

Tensor empty_like(const Tensor& x) { return Tensor::empty(x.shape(), x.dtype(), x.device()); }
Tensor zeros_like(const Tensor& x) { return Tensor::zeros(x.shape(), x.dtype(), x.device()); }

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  if (!x.defined()) return out << "tensor (undefined)";
  constexpr int64_t kShown = 8;
  Tensor host = x.to(Device::cpu);
  out << "tensor " << x.dtype() << ' ' << x.shape() << " [";
  with_dtype(x.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < std::min(kShown, x.numel()); ++i) out << (i ? ", " : "") << +host.data<T>()[i];
  });
  return out << (x.numel() > kShown ? ", ...]" : "]");
}

void check_same_device(const char* op, const Tensor& a, const Tensor& b) {
  LINNET_CHECK(a.device() == b.device(), op, ": one input is on ", a.device(), " and another on ", b.device(),
               "; move one with .to(device)");
}

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  LINNET_CHECK(a.dtype() == b.dtype(), op, ": one input is ", a.dtype(), " and another ", b.dtype(),
               "; convert one with .to(dtype)");
}

}  // namespace linnet
