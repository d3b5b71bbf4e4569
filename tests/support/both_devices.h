// An op on the CPU and on a GPU, in one process: outputs and gradients.
#pragma once
#include <doctest/doctest.h>

#include <vector>

#include "linnet/autograd/tape.h"
#include "support/close.h"
#include "support/modules.h"

namespace linnet::test {

/// Random numbers on the CPU; the same ones for the same seed.
inline Tensor draw_on_cpu(const Shape& shape, uint64_t seed, Dtype dtype = Dtype::f32) {
  return normal(shape, seed, dtype).to(Device::cpu);
}
/// 0 or 1, about a third of them 0.
inline Tensor draw_mask_on_cpu(const Shape& shape, uint64_t seed) {
  std::vector<uint8_t> mask;
  for (float x : draw_on_cpu(shape, seed).to_vector<float>()) mask.push_back(x > -0.43f);
  return Tensor::from(mask, shape, Device::cpu);
}

/// Output and gradients of op(inputs, device) on that device.
template <class Op>
std::vector<Tensor> run_on(Device device, const std::vector<Tensor>& inputs, Op op) {
  Tape tape;
  std::vector<Variable> leaves;
  for (const Tensor& x : inputs) leaves.push_back(Variable::leaf(x.to(device).clone()));
  const Variable out = op(leaves, device);
  tape.backward(out, draw_on_cpu(out.shape(), 9, out.dtype()).to(device));
  std::vector<Tensor> all{out.value()};
  for (const Variable& leaf : leaves) all.push_back(leaf.grad());
  return all;
}

/// The same on both, to 1e-5 in f32 and 1e-12 in f64. Of inputs on the CPU.
template <class Op>
void check_both_devices(const std::vector<Tensor>& inputs, Op op) {
  const std::vector<Tensor> wanted = run_on(Device::cpu, inputs, op), given = run_on(Device::cuda, inputs, op);
  for (size_t i = 0; i < wanted.size(); ++i) {
    CAPTURE(i);  // 0 is the output, then the gradients
    CHECK(given[i].device() == Device::cuda);
    CHECK(deviation(given[i], wanted[i]) < (inputs[0].dtype() == Dtype::f32 ? 1e-5 : 1e-12));
  }
}

}  // namespace linnet::test
