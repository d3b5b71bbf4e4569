#include "linnet/ops/layer_norm.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "linnet/autograd/record.h"
#include "linnet/core/compute.h"
#include "linnet/core/threads.h"
#include "linnet/ops/layer_norm_kernels.h"

namespace linnet {
namespace {

constexpr FloatInstances<LayerNormKernels> kernels = LINNET_FLOAT_INSTANCES(layer_norm);

constexpr double kForwardCost = 0.5, kBackwardCost = 1.0;  // nanoseconds an element

/// dweight and dbias are summed over blocks of rows whose size depends on the shape alone, then over the blocks; a GPU
/// takes all rows as one block.
int64_t rows_in_block(Device device, int64_t rows) {
  return device == Device::cpu ? std::clamp<int64_t>(rows / 16, 1, 64) : std::max<int64_t>(rows, 1);
}

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  LINNET_CHECK(x.rank() >= 1, "layer_norm: input () has no axis to normalise");
  LINNET_CHECK(eps >= 0 && std::isfinite(eps), "layer_norm: eps ", eps, " given, wanted: finite and not negative");
  for (const Tensor* p : {&weight, &bias}) {
    if (!p->defined()) continue;
    const char* name = p == &weight ? "weight" : "bias";
    LINNET_CHECK(p->rank() >= 1 && p->rank() <= x.rank() && x.shape().last(p->rank()) == p->shape(),
                 "layer_norm: input ", x.shape(), " does not end in the ", name, "'s shape ", p->shape());
    check_same_device("layer_norm", x, *p);
    check_same_dtype("layer_norm", x, *p);
  }
  LINNET_CHECK(!weight.defined() || !bias.defined() || weight.shape() == bias.shape(), "layer_norm: weight ",
               weight.shape(), " and bias ", bias.shape(), " differ in shape");
}

template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

/// The axes that are normalised: those of weight or bias, else the last.
Shape normalised(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return weight.defined() ? weight.shape() : bias.defined() ? bias.shape() : x.shape().last(1);
}

/// Writes y, and stats (rows, 3) where they are defined.
void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y, Tensor& stats) {
  const Shape norm = normalised(x, weight, bias);
  const int64_t width = norm.numel(), rows = x.shape().first(x.rank() - norm.rank()).numel();
  with_float("layer_norm", x.dtype(), [&]<class T>() {
    const auto& table = kernels.of<T>(x.device());
    T *const y_data = y.mutable_data<T>(), *const stats_data = stats.defined() ? stats.mutable_data<T>() : nullptr;
    if (x.device() == Device::cuda)
      return table.forward(rows, width, x.data<T>(), data_or_null<T>(weight), data_or_null<T>(bias),
                           static_cast<T>(eps), y_data, stats_data);
    parallel_for(rows, kForwardCost * static_cast<double>(width), [&](int64_t begin, int64_t end) {
      constexpr int64_t kRows = 16;
      T unwanted[3 * kRows];
      for (int64_t row = begin; row < end; row += kRows) {
        table.forward(std::min(kRows, end - row), width, x.data<T>() + row * width, data_or_null<T>(weight),
                      data_or_null<T>(bias), static_cast<T>(eps), y_data + row * width,
                      stats_data ? stats_data + 3 * row : unwanted);
      }
    });
  });
}

struct Backward {
  int64_t rows, width;
  bool want_x, want_weight, want_bias;

  /// dx in the shape of x; dweight and dbias as (width).
  template <class T>
  Gradients run(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& stats) const {
    const int64_t size = rows_in_block(x.device(), rows), blocks = (rows + size - 1) / size;
    Tensor dx, dweights, dbiases;
    if (want_x) dx = empty_like(x);
    if (want_weight) dweights = Tensor::empty({blocks, width}, x.dtype(), x.device());
    if (want_bias) dbiases = Tensor::empty({blocks, width}, x.dtype(), x.device());
    T* dx_data = want_x ? dx.mutable_data<T>() : nullptr;
    T* dweight_data = want_weight ? dweights.mutable_data<T>() : nullptr;
    T* dbias_data = want_bias ? dbiases.mutable_data<T>() : nullptr;
    const auto& table = kernels.of<T>(x.device());
    parallel_for(x.device(), blocks, kBackwardCost * static_cast<double>(size * width),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t b = begin; b < end; ++b) {
                     const int64_t row = b * size, at = row * width;
                     table.backward(std::min(size, rows - row), width, dy.data<T>() + at, x.data<T>() + at,
                                    data_or_null<T>(weight), stats.data<T>() + 3 * row, want_x ? dx_data + at : nullptr,
                                    want_weight ? dweight_data + b * width : nullptr,
                                    want_bias ? dbias_data + b * width : nullptr);
                   }
                 });
    auto total = [&](const Tensor& partial) {
      if (!partial.defined()) return partial;
      if (blocks == 1) return partial.reshape({width});
      return compute::reduce(compute::Reduction::sum, partial, std::array<int64_t, 1>{0}, false);
    };
    return {dx, total(dweights), total(dbiases)};
  }
};

}  // namespace

void layer_norm_into(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y) {
  check_defined("layer_norm", x, y);
  check(x, weight, bias, eps);
  LINNET_CHECK(y.shape() == x.shape() && y.raw() != x.raw(), "layer_norm: output ", y.shape(), " given, another ",
               x.shape(), " wanted");
  check_same_device("layer_norm", x, y);
  check_same_dtype("layer_norm", x, y);
  Tensor no_stats;
  forward(x, weight, bias, eps, y, no_stats);
}

Variable layer_norm(const Variable& xv, const Variable& weightv, const Variable& biasv, double eps) {
  check_defined("layer_norm", xv);
  const Tensor& x = xv.value();
  const Tensor weight = weightv.defined() ? weightv.value() : Tensor();
  const Tensor bias = biasv.defined() ? biasv.value() : Tensor();
  check(x, weight, bias, eps);
  const Shape norm = normalised(x, weight, bias);
  const int64_t width = norm.numel(), rows = x.shape().first(x.rank() - norm.rank()).numel();
  Tensor y = empty_like(x), stats = Tensor::empty({rows, 3}, x.dtype(), x.device());
  forward(x, weight, bias, eps, y, stats);

  const Backward backward{rows, width, wants_grad(xv), weight.defined() && wants_grad(weightv),
                          bias.defined() && wants_grad(biasv)};
  return record("layer_norm", y, {xv, weightv, biasv}, keep(x, weight, stats),
                [=](const Tensor& dy, const Tensor& x_kept, const Tensor& weight_kept, const Tensor& stats_kept) {
                  Gradients d = with_float("layer_norm", x_kept.dtype(), [&]<class T>() {
                    return backward.run<T>(dy, x_kept, weight_kept, stats_kept);
                  });
                  for (size_t i : {1, 2})
                    if (d[i].defined()) d[i] = d[i].reshape(norm);
                  return d;
                });
}

}  // namespace linnet
