#include "linnet/nn/positions.h"

#include <cmath>
#include <limits>

#include "linnet/core/compute.h"
#include "linnet/ops/elementwise.h"
#include "linnet/ops/shape_ops.h"

namespace linnet::nn {
namespace {

void check_sequence(const Module& module, const Variable& x, int64_t dim) {
  LINNET_CHECK(x.rank() == 3 && x.size(-1) == dim, module.label(), ": input ", x.shape(), " is not (batch, time, ", dim,
               ")");
}

void check_step(const Module& module, const Shape& shape, int64_t dim) {
  LINNET_CHECK(shape.rank() == 2 && shape.back() == dim, module.label(), ": input ", shape, " is not (batch, ", dim,
               "), one step");
}

}  // namespace

SinusoidalPositions::SinusoidalPositions(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)), dim_(options.dim) {
  LINNET_CHECK(dim_ >= 1, label(), ": dim ", dim_, ", want at least 1");
  for (int64_t j = 0; j < dim_; j += 2) {
    rates_.push_back(std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(dim_)));
  }
}

template <class T>
void SinusoidalPositions::fill(int64_t first, int64_t time, T* to) const {
  for (int64_t t = 0; t < time; ++t, to += dim_) {
    for (int64_t j = 0; j < dim_; j += 2) {
      const double angle = static_cast<double>(first + t) * rates_[static_cast<size_t>(j / 2)];
      to[j] = static_cast<T>(std::sin(angle));
      if (j + 1 < dim_) to[j + 1] = static_cast<T>(std::cos(angle));
    }
  }
}

Tensor SinusoidalPositions::table(int64_t first, int64_t time, Dtype dtype) const {
  LINNET_CHECK(first >= 0 && time >= 0, label(), ": ", time, " positions from ", first, ", none may be negative");
  LINNET_CHECK(first <= std::numeric_limits<int64_t>::max() - time, label(), ": ", time, " positions from ", first,
               " end beyond 2^63 - 1");
  Tensor table = Tensor::empty({time, dim_}, dtype, Device::cpu);
  with_float("positions", dtype, [&]<class T>() { fill(first, time, table.mutable_data<T>()); });
  return table;
}

Variable SinusoidalPositions::operator()(const Variable& x, int64_t first) const {
  check_sequence(*this, x, dim_);
  return x + table(first, x.size(1), x.dtype()).to(x.device());
}

Variable SinusoidalPositions::step(const Variable& x, int64_t position) const {
  check_step(*this, x.shape(), dim_);
  return x + table(position, 1, x.dtype()).to(x.device());
}

void SinusoidalPositions::step_inplace(Tensor& x, int64_t position, Workspace& workspace) const {
  check_step(*this, x.shape(), dim_);
  LINNET_CHECK(position >= 0, label(), ": position ", position, " is negative");
  Tensor row = workspace.take({dim_}, x.dtype(), Device::cpu);
  with_float("positions", x.dtype(), [&]<class T>() { fill(position, 1, row.mutable_data<T>()); });
  compute::add_row_inplace(x, row.to(x.device()));
}

LearnedPositions::LearnedPositions(Module& parent, std::string name, const Options& options)
    : Module(parent, std::move(name)) {
  const int64_t max_time = options.max_time, dim = options.dim;
  LINNET_CHECK(max_time >= 1 && dim >= 1, label(), ": max_time ", max_time, " and dim ", dim, ", want at least 1");
  weight = parameter("weight", {max_time, dim}, options.weight_init ? options.weight_init : init::normal(0.02));
}

void LearnedPositions::check_range(int64_t first, int64_t time) const {
  LINNET_CHECK(first >= 0 && first <= weight.size(0) - time, label(), ": ", time, " positions from ", first,
               " wanted, but max_time is ", weight.size(0));
}

Variable LearnedPositions::rows(int64_t first, int64_t time) const {
  check_range(first, time);
  return slice(weight, 0, first, first + time);
}

Variable LearnedPositions::operator()(const Variable& x, int64_t first) const {
  check_sequence(*this, x, weight.size(1));
  return x + rows(first, x.size(1));
}

Variable LearnedPositions::step(const Variable& x, int64_t position) const {
  check_step(*this, x.shape(), weight.size(1));
  return x + rows(position, 1);
}

void LearnedPositions::step_inplace(Tensor& x, int64_t position, Workspace&) const {
  check_step(*this, x.shape(), weight.size(1));
  check_range(position, 1);
  compute::add_row_inplace(x, weight.value().slice(position, position + 1).reshape(Shape{weight.size(1)}));
}

}  // namespace linnet::nn
