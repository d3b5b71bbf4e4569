// A program of a library that was built without CUDA: what it says when it is asked for it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>

#include "linnet/core/dispatch.h"
#include "linnet/core/tensor.h"

using namespace linnet;

namespace {
constexpr const char* kHint =
    "cuda: this linnet was built without CUDA; use the device cpu, or build linnet with the CUDA Toolkit installed";
}

TEST_CASE("a build without CUDA says what to do") {
  int table = 0;
  const Instances<int> instances{&table, &table};
  CHECK_FALSE(cuda_available());
  CHECK_THROWS_WITH_AS(instances.of(Device::cuda), kHint, Error);
  setenv("LINNET_DEVICE", "cuda", 1);  // read once, at the first tensor
  CHECK_THROWS_WITH_AS(Tensor::zeros({1}), kHint, Error);
  set_default_device(Device::cpu);
  CHECK_THROWS_WITH_AS(Tensor::zeros({1}, Dtype::f32, Device::cuda), kHint, Error);
  CHECK_THROWS_WITH_AS(Tensor::zeros({1}).to(Device::cuda), kHint, Error);
  CHECK_THROWS_WITH_AS(cuda_info(), kHint, Error);
  CHECK_THROWS_WITH_AS(memory_stats(Device::cuda), kHint, Error);
  CHECK_THROWS_WITH_AS(set_default_device(Device::cuda), kHint, Error);
  CHECK(default_device() == Device::cpu);
}
