// Tensor: a handle to a contiguous, row-major array: shape, dtype, device, shared storage. Copies share memory.
#pragma once
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "linnet/core/dtype.h"
#include "linnet/core/error.h"
#include "linnet/core/shape.h"
#include "linnet/core/storage.h"

namespace linnet {

class Tensor {
 public:
  Tensor() = default;  ///< undefined: no shape, no memory

  // Factories. Only `empty` leaves memory as it was.
  static Tensor empty(const Shape& shape, Dtype dtype = Dtype::f32, Device device = default_device());
  static Tensor zeros(const Shape& shape, Dtype dtype = Dtype::f32, Device device = default_device());
  static Tensor full(const Shape& shape, double value, Dtype dtype = Dtype::f32, Device device = default_device());
  static Tensor arange(int64_t n, Dtype dtype = Dtype::i32, Device device = default_device());  ///< 0 .. n-1
  /// Values in row-major order; dtype by T: from<float>, double, int32_t, uint8_t. Throws where the count is not numel.
  template <class T>
  static Tensor from(std::span<const T> values, const Shape& shape, Device device = default_device());
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = default_device()) {
    return from(std::span<const T>(values), shape, device);
  }
  template <class T>
  static Tensor from(std::initializer_list<T> values, const Shape& shape, Device device = default_device()) {
    return from(std::span<const T>(values.begin(), values.size()), shape, device);
  }
  static Tensor scalar(double value, Dtype dtype = Dtype::f32, Device device = default_device()) {
    return full({}, value, dtype, device);
  }
  // Random numbers from the default generator (core/random.h), the same on every device.
  static Tensor uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::f32,
                        Device device = default_device());
  static Tensor normal(const Shape& shape, double mean = 0, double std = 1, Dtype dtype = Dtype::f32,
                       Device device = default_device());

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_.size(axis); }
  int64_t numel() const { return numel_; }
  int64_t bytes() const { return numel_ * size_of(dtype_); }
  Dtype dtype() const { return dtype_; }
  Device device() const;

  /// Read access; throws where T is not the dtype. The pointer is on the tensor's device.
  template <class T>
  const T* data() const {
    check_access(dtype_of<T>);
    return reinterpret_cast<const T*>(static_cast<const char*>(storage_->data()) + offset_);
  }
  /// Write access: raises the storage's version, so that the tape notices a changed tensor. It does so here and not at
  /// each write: ask for the pointer anew after a forward pass, or the way back works with what nobody saw change.
  template <class T>
  T* mutable_data() {
    check_access(dtype_of<T>);
    return reinterpret_cast<T*>(static_cast<char*>(storage_->mutable_data()) + offset_);
  }
  const void* raw() const {
    check_storage();
    return static_cast<const char*>(storage_->data()) + offset_;
  }
  void* mutable_raw() {
    check_storage();
    return static_cast<char*>(storage_->mutable_data()) + offset_;
  }

  /// The only element as a double; throws where there is not exactly one.
  double item() const;
  /// All elements, on the host.
  template <class T>
  std::vector<T> to_vector() const;

  Tensor reshape(const Shape& shape) const;                    ///< shares memory; throws where numel differs
  Tensor reshape(std::initializer_list<int64_t> sizes) const;  ///< one size may be -1
  Tensor slice(int64_t begin, int64_t end) const;              ///< rows begin .. end-1 of the first axis; shares memory
  Tensor clone() const;                                        ///< new memory
  /// Itself where the dtype is the same. Integers are cut towards zero; throws where a value does not fit, NaN
  /// included.
  Tensor to(Dtype dtype) const;
  Tensor to(Device device) const;        ///< itself where the device is the same
  void copy_from(const Tensor& source);  ///< same shape and dtype; devices may differ
  void fill(double value);               ///< throws where the value does not fit the dtype

  bool shares_storage(const Tensor& other) const { return storage_ == other.storage_; }
  long owners() const { return storage_.use_count(); }  ///< how many handles share this memory
  const std::shared_ptr<Storage>& storage() const { return storage_; }

 private:
  void check_storage() const;
  void check_access(Dtype wanted) const;

  Shape shape_;
  int64_t numel_ = 0;
  Dtype dtype_ = Dtype::f32;
  int64_t offset_ = 0;  // bytes
  std::shared_ptr<Storage> storage_;
};

Tensor empty_like(const Tensor& x);
Tensor zeros_like(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);  ///< shape, dtype and the first values

/// Throws, naming the op and both devices (or dtypes), where a and b do not match.
void check_same_device(const char* op, const Tensor& a, const Tensor& b);
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);

}  // namespace linnet
