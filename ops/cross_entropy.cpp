#include "linnet/ops/cross_entropy.h"

#include <algorithm>
#include <limits>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "linnet/ops/cross_entropy_kernels.h"

namespace linnet {
namespace {

constexpr FloatInstances<CrossEntropyKernels> kernels = LINNET_FLOAT_INSTANCES(cross_entropy);

constexpr double kCost = 0.8;  // nanoseconds an element
constexpr int64_t kNoneIgnored = std::numeric_limits<int64_t>::min();

void check(const Tensor& logits, const Tensor& targets, double smoothing) {
  LINNET_CHECK(is_float(logits.dtype()), "cross_entropy: logits are ", logits.dtype(), ", f32 or f64 wanted");
  LINNET_CHECK(logits.rank() >= 1, "cross_entropy: logits () have no axis of classes");
  LINNET_CHECK(targets.dtype() == Dtype::i32, "cross_entropy: targets are ", targets.dtype(), ", i32 wanted");
  const Shape wanted = logits.shape().first(logits.rank() - 1);
  LINNET_CHECK(targets.shape() == wanted, "cross_entropy: logits ", logits.shape(), " want targets ", wanted, ", not ",
               targets.shape());
  LINNET_CHECK(smoothing >= 0 && smoothing <= 1, "cross_entropy: label smoothing ", smoothing, " is not in 0 .. 1");
  check_same_device("cross_entropy", logits, targets);
}

TargetCount count_on_cpu(int64_t rows, const int32_t* targets, int64_t classes, int64_t ignore) {
  TargetCount count{0, -1};
  for (int64_t i = 0; i < rows && count.first_bad < 0; ++i) {
    if (targets[i] == ignore) continue;
    ++count.counted;
    if (targets[i] < 0 || targets[i] >= classes) count.first_bad = i;
  }
  return count;
}

/// Range-checks the targets; returns how many are not ignored.
int64_t count_targets(const Tensor& targets, int64_t classes, int64_t ignore) {
  const auto on_device = kernels.of<float>(targets.device()).count_targets;
  const TargetCount count =
      (on_device ? on_device : count_on_cpu)(targets.numel(), targets.data<int32_t>(), classes, ignore);
  const int64_t i = count.first_bad;
  if (i >= 0)
    fail("cross_entropy: target ", targets.reshape({-1}).slice(i, i + 1).to_vector<int32_t>()[0], " at position ", i,
         ", but there are ", classes, " classes");
  return count.counted;
}

}  // namespace

Variable cross_entropy(const Variable& logitsv, const Tensor& targets, const CrossEntropyOptions& options) {
  check_defined("cross_entropy", logitsv, targets);
  const Tensor& logits = logitsv.value();
  const double smoothing = options.label_smoothing;
  check(logits, targets, smoothing);
  check_reduce("cross_entropy", options.reduce);
  const Reduce reduce = options.reduce;
  const int64_t classes = logits.size(-1), rows = targets.numel(), ignore = options.ignore_index.value_or(kNoneIgnored);
  const int64_t count = count_targets(targets, classes, ignore);
  const double factor = reduce == Reduce::mean ? 1 / static_cast<double>(std::max<int64_t>(1, count)) : 1;

  Tensor loss = Tensor::empty(targets.shape(), logits.dtype(), logits.device());
  Tensor stats = Tensor::empty({rows, 2}, logits.dtype(), logits.device());
  with_float("cross_entropy", logits.dtype(), [&]<class T>() {
    const auto& table = kernels.of<T>(logits.device());
    T *loss_data = loss.mutable_data<T>(), *stats_data = stats.mutable_data<T>();
    parallel_for(logits.device(), rows, kCost * static_cast<double>(classes), [&](int64_t begin, int64_t end) {
      table.forward(end - begin, classes, logits.data<T>() + begin * classes, targets.data<int32_t>() + begin, ignore,
                    static_cast<T>(smoothing), loss_data + begin, stats_data + 2 * begin);
    });
  });
  if (reduce != Reduce::none) loss = compute::reduce(compute::Reduction::sum, loss, {}, false);
  if (factor != 1) compute::scale_inplace(loss, factor);

  return record(
      "cross_entropy", loss, {logitsv}, keep(logits, targets, stats),
      [=](const Tensor& dy, const Tensor& x, const Tensor& t, const Tensor& stats_kept) -> Gradients {
        Tensor dx = empty_like(x);
        with_float("cross_entropy", x.dtype(), [&]<class T>() {
          const auto& table = kernels.of<T>(x.device());
          T* dx_data = dx.mutable_data<T>();
          const int64_t stride = reduce == Reduce::none ? 1 : 0;
          parallel_for(x.device(), rows, kCost * static_cast<double>(classes), [&](int64_t begin, int64_t end) {
            table.backward(end - begin, classes, x.data<T>() + begin * classes, t.data<int32_t>() + begin, ignore,
                           static_cast<T>(smoothing), stats_kept.data<T>() + 2 * begin, dy.data<T>() + begin * stride,
                           stride, static_cast<T>(factor), dx_data + begin * classes);
          });
        });
        return {dx};
      });
}

}  // namespace linnet
