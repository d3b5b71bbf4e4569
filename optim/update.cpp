#include "linnet/optim/update.h"

#include "linnet/core/compute.h"
#include "linnet/core/threads.h"

namespace linnet::optim {

namespace {

constexpr FloatInstances<OptimKernels> kernels = LINNET_CPU_FLOAT_INSTANCES(optim);
constexpr FloatInstances<OptimListKernels> list_kernels = {{nullptr, nullptr, nullptr, nullptr, &cuda::optim_list_f32},
                                                           {nullptr, nullptr, nullptr, nullptr, &cuda::optim_list_f64}};

// One pass over four arrays: about a nanosecond an element, bound by memory.
constexpr double kNanoseconds = 1;

template <class T>
AdaptiveStep<T> rounded(const AdaptiveStep<double>& s) {
  return {T(s.beta1),
          T(s.one_minus_beta1),
          T(s.beta2),
          T(s.one_minus_beta2),
          T(s.decay_gradient),
          T(s.shrink),
          T(s.rate),
          T(s.scale),
          T(s.eps),
          s.adaptive};
}
template <class T>
DescentStep<T> rounded(const DescentStep<double>& s) {
  return {T(s.momentum), T(s.decay_gradient), T(s.shrink), T(s.rate), s.nesterov};
}

template <class T>
void run_on_cpu(const AdaptivePart<T>& part) {
  const OptimKernels<T>& k = kernels.of<T>(Device::cpu);
  parallel_for(part.n, kNanoseconds, [&](int64_t begin, int64_t end) {
    k.adaptive(end - begin, part.gradient + begin, part.m + begin, part.v + begin, part.theta + begin, part.step);
  });
}
template <class T>
void run_on_cpu(const DescentPart<T>& part) {
  const OptimKernels<T>& k = kernels.of<T>(Device::cpu);
  parallel_for(part.n, kNanoseconds, [&](int64_t begin, int64_t end) {
    k.descent(end - begin, part.gradient + begin, part.m ? part.m + begin : nullptr, part.theta + begin, part.step);
  });
}

/// The parts of those of a GPU, the others run at once.
template <class T, class Part, class List, class Make>
std::vector<Part> parts_on_cuda(const List& list, Make make) {
  std::vector<Part> parts;
  for (const auto& each : list) {
    if (each.theta.dtype() != dtype_of<T>) continue;
    const Part part = make(each);
    if (each.theta.device() == Device::cuda)
      parts.push_back(part);
    else
      run_on_cpu(part);
  }
  return parts;
}

template <class T>
T* data_of(Tensor x) {
  return x.defined() ? x.mutable_data<T>() : nullptr;
}

}  // namespace

void Updates::run() {
  const auto run_all = [&]<class T>() {
    const auto adaptive = parts_on_cuda<T, AdaptivePart<T>>(adaptive_, [](const Adaptive& u) -> AdaptivePart<T> {
      return {u.theta.numel(), u.gradient.data<T>(), data_of<T>(u.m),
              data_of<T>(u.v), data_of<T>(u.theta),  rounded<T>(u.step)};
    });
    const auto descent = parts_on_cuda<T, DescentPart<T>>(descent_, [](const Descent& u) -> DescentPart<T> {
      return {u.theta.numel(), u.gradient.data<T>(), data_of<T>(u.m), data_of<T>(u.theta), rounded<T>(u.step)};
    });
    if (!adaptive.empty()) list_kernels.of<T>(Device::cuda).adaptive(adaptive);
    if (!descent.empty()) list_kernels.of<T>(Device::cuda).descent(descent);
  };
  run_all.template operator()<float>();
  run_all.template operator()<double>();
  adaptive_.clear();
  descent_.clear();
}

namespace {

/// Those of a GPU, by dtype: f<T>(their numbers, their parts).
template <class F>
void with_parts(const std::vector<Tensor>& gradients, F&& f) {
  const auto of_type = [&]<class T>() {
    std::vector<size_t> numbers;
    std::vector<GradientPart<T>> parts;
    for (size_t i = 0; i < gradients.size(); ++i) {
      const Tensor& g = gradients[i];
      if (g.device() != Device::cuda || g.dtype() != dtype_of<T>) continue;
      numbers.push_back(i);
      parts.push_back({g.numel(), data_of<T>(g)});
    }
    if (!parts.empty()) f(list_kernels.of<T>(Device::cuda), numbers, parts);
  };
  of_type.template operator()<float>();
  of_type.template operator()<double>();
}

}  // namespace

std::vector<GradientSize> sizes_of(const std::vector<Tensor>& gradients) {
  std::vector<GradientSize> sizes(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i].device() == Device::cpu)
      sizes[i] = {compute::sum_of_squares(gradients[i]), compute::all_finite(gradients[i])};
  with_parts(gradients, [&](const auto& table, const std::vector<size_t>& numbers, const auto& parts) {
    const std::vector<GradientSize> some = table.sizes(parts);
    for (size_t k = 0; k < numbers.size(); ++k) sizes[numbers[k]] = some[k];
  });
  return sizes;
}

void scale(std::vector<Tensor>& gradients, double factor) {
  for (Tensor& gradient : gradients)
    if (gradient.device() == Device::cpu) compute::scale_inplace(gradient, factor);
  with_parts(gradients,
             [&](const auto& table, const std::vector<size_t>&, const auto& parts) { table.scale(parts, factor); });
}

}  // namespace linnet::optim
