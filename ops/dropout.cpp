#include "linnet/ops/dropout.h"

#include <cmath>

#include "linnet/autograd/record.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "linnet/ops/dropout_kernels.h"

namespace linnet {
namespace {

constexpr FloatInstances<DropoutKernels> kernels = LINNET_FLOAT_INSTANCES(dropout);

constexpr double kCost = 1.0;  // nanoseconds an element

Tensor masked(const Tensor& x, double p, const DropoutWords& words) {
  const double threshold = std::ceil(p * 4294967296.0);
  if (threshold >= 4294967296.0) return zeros_like(x);
  Tensor y = empty_like(x);
  with_float("dropout", x.dtype(), [&]<class T>() {
    const T* x_data = x.data<T>();
    T* y_data = y.mutable_data<T>();
    const auto& table = kernels.of<T>(x.device());
    parallel_for(x.device(), x.numel(), kCost, [&](int64_t begin, int64_t end) {
      table.apply(begin, end, words, static_cast<uint32_t>(threshold), static_cast<T>(1 / (1 - p)), x_data, y_data);
    });
  });
  return y;
}

}  // namespace

Variable dropout(const Variable& xv, double p) {
  check_defined("dropout", xv);
  LINNET_CHECK(p >= 0 && p <= 1, "dropout: p ", p, " is not in 0 .. 1");
  const Tensor& x = xv.value();
  LINNET_CHECK(is_float(x.dtype()), "dropout: input is ", x.dtype(), ", f32 or f64 wanted");
  if (!training() || p == 0) return xv;
  Generator& generator = default_generator();
  const DropoutWords words{generator.seed, generator.stream, generator.offset};
  Tensor y = masked(x, p, words);
  generator.take(x.numel());  // last: a call that fails takes none
  return record("dropout", std::move(y), {xv}, keep(),
                [p, words](const Tensor& dy) -> Gradients { return {masked(dy, p, words)}; });
}

}  // namespace linnet
