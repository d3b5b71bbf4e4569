#include "linnet/ops/sample.h"

#include <limits>

#include "linnet/ops/sample_kernels.h"

namespace linnet {
namespace {

constexpr FloatInstances<SampleKernels> kernels = {{.plain = nullptr, .portable = nullptr, .cuda = &cuda::sample_f32},
                                                   {.plain = nullptr, .portable = nullptr, .cuda = &cuda::sample_f64}};

}  // namespace

Tensor sample_rows(const Tensor& logits, std::span<const double> u, const SampleOptions& options) {
  LINNET_CHECK(logits.rank() == 2 && logits.size(0) == std::ssize(u), "sample_rows: logits ", logits.shape(), " and ",
               u.size(), " numbers given, (batch, classes) and as many as rows wanted");
  LINNET_CHECK(logits.device() == Device::cuda, "sample_rows: logits are on ", logits.device(), ", cuda wanted");
  LINNET_CHECK(logits.size(1) <= std::numeric_limits<int32_t>::max(), "sample_rows: logits ", logits.shape(),
               " have more classes than an i32 counts");
  const Shape shape = logits.shape().first(1);
  Tensor numbers = Tensor::empty(shape, Dtype::f64, Device::cpu);
  std::copy(u.begin(), u.end(), numbers.mutable_data<double>());
  numbers = numbers.to(Device::cuda);
  Tensor tokens = Tensor::empty(shape, Dtype::i32, Device::cuda);
  with_float("sample_logits", logits.dtype(), [&]<class T>() {
    kernels.of<T>(Device::cuda)
        .sample(logits.size(0), logits.size(1), logits.data<T>(), numbers.data<double>(), options,
                tokens.mutable_data<int32_t>());
  });
  return tokens.to(Device::cpu);
}

}  // namespace linnet
