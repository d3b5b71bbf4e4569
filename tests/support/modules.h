// What tests of layers and models share: weights that hide nothing, tokens, files that go away.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <string>

#include "linnet/core/compute.h"
#include "linnet/nn/module.h"

namespace linnet::test {

/// Every parameter ~ N(0, std^2), in its own dtype: no bias stays 0 and no scale stays 1.
inline void randomise(nn::Module& module, double std = 0.3, uint64_t seed = 5) {
  for (auto& [name, value] : module.named_parameters()) {
    Generator generator{seed, stream_of(name), 0};
    value.mutable_value().copy_from(generator.normal(value.shape(), 0, std, value.dtype()).to(value.device()));
  }
}

/// i32 tokens below `vocab`, of any shape.
inline Tensor tokens(const Shape& shape, int64_t vocab, uint64_t seed = 3) {
  Generator generator{seed, 0, 0};
  std::vector<int32_t> values(static_cast<size_t>(shape.numel()));
  for (int32_t& value : values) value = static_cast<int32_t>(generator.below(vocab));
  return Tensor::from(values, shape);
}

inline Tensor normal(const Shape& shape, uint64_t seed = 3, Dtype dtype = Dtype::f32) {
  return Generator{seed, 1, 0}.normal(shape, 0, 1, dtype);
}

/// Step t of (batch, time, ...) as (batch, ...).
inline Tensor time_step(const Tensor& x, int64_t t) {
  return compute::slice(x, 1, t, t + 1).reshape(x.shape().without(1));
}

/// The first `end` steps of sample b alone, (1, end, ...).
inline Tensor sample(const Tensor& x, int64_t b, int64_t end) { return compute::slice(x.slice(b, b + 1), 1, 0, end); }

/// A file name in the system's temporary folder; the file is removed at the end of the scope.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("linnet_" + std::to_string(::getpid()) + "_" + name)) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace linnet::test
