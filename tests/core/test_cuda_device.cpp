// The cuda device's memory, and a machine that has none. Tensors are put there by name, whatever the default device is.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "support/arrays.h"
#include "support/close.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("a machine without a GPU says so, and works on") {
  if (cuda_available()) return;  // ctest's cuda_without_gpu is told that there is none
  const auto f = [] { return Tensor::zeros({1}, Dtype::f32, Device::cuda); };
  const std::string message = message_of(f);
  if (std::getenv("CUDA_ON_CPU_DEVICES"))
    CHECK(message == "cuda: no CUDA-capable device is detected; use the device cpu");
  else  // in the words of the driver
    CHECK(message.starts_with("cuda: "));
  CHECK(message.find("; use the device cpu") != std::string::npos);
  const Tensor here = Tensor::full({1}, 3, Dtype::f32, Device::cpu);
  CHECK(message_of([&] { here.to(Device::cuda); }) == message);
  CHECK(message_of([] { set_default_device(Device::cuda); }) == message);
  CHECK(message_of([] { cuda_info(); }) == message);
  CHECK(message_of([] { memory_stats(Device::cuda); }) == message);
  CHECK(compute::add(here, here).item() == 6);
}

TEST_CASE("bytes on a GPU are counted as on the CPU") {
  if (!cuda_available()) return;
  for (const Device device : {Device::cpu, Device::cuda}) {
    const MemoryStats before = memory_stats(device);
    reset_peak(device);
    {
      const Tensor a = Tensor::zeros({25}, Dtype::f32, device), b = Tensor::empty({5000}, Dtype::u8, device);
      CHECK(memory_stats(device).live == before.live + 5100);
      const Tensor shared = a.reshape({5, 5}), part = b.slice(0, 100);
      CHECK(memory_stats(device).live == before.live + 5100);
    }
    const MemoryStats after = memory_stats(device);
    CHECK(after.live == before.live);
    CHECK(after.peak == before.live + 5100);
    CHECK(after.requested == before.requested + 5100);
  }
  const CudaInfo info = cuda_info();
  CHECK(!info.name.empty());
  CHECK(info.memory >= info.free);
  CHECK(info.free > 0);
}

TEST_CASE("memory that was freed on a GPU serves the next tensor of its size") {
  if (!cuda_available() || std::getenv("LINNET_CACHE")) return;  // which may turn that off
  const void* first;
  {
    const Tensor a = Tensor::empty({300'000}, Dtype::f32, Device::cuda);
    first = a.raw();
  }
  const int64_t reserved = memory_stats(Device::cuda).reserved;
  {
    const Tensor b = Tensor::empty({299'999}, Dtype::f32, Device::cuda);
    CHECK(b.raw() == first);
    CHECK(memory_stats(Device::cuda).reserved == reserved);
  }
  empty_cache(Device::cuda);
  CHECK(memory_stats(Device::cuda).reserved <= reserved - 1'200'000);
}

TEST_CASE("a request beyond the GPU's memory is an Error, and what was there works on") {
  if (!cuda_available()) return;
  const Tensor x = Tensor::full({4}, 2, Dtype::f32, Device::cuda);
  const int64_t live = memory_stats(Device::cuda).live;
  const std::string message = message_of([] { Tensor::empty({int64_t{1} << 44}, Dtype::f32, Device::cuda); });
  CHECK(message.starts_with("storage: no memory for 70368744177664 bytes on cuda"));
  CHECK(memory_stats(Device::cuda).live == live);
  CHECK(compute::add(x, x).to_vector<float>() == std::vector<float>(4, 4));
}

TEST_CASE("copies of any size arrive whole, both ways and on the device") {
  if (!cuda_available()) return;
  // Pinned memory is 4 MiB at a time.
  for (const int64_t n : {0, 1, 7, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, (8 << 20) + 3, (13 << 20) + 5}) {
    Tensor bytes = Tensor::empty({n}, Dtype::u8, Device::cpu);
    uint8_t* x = bytes.mutable_data<uint8_t>();
    for (int64_t i = 0; i < n; ++i) x[i] = static_cast<uint8_t>(i * 2654435761u >> 24);
    const Tensor there = bytes.to(Device::cuda);
    CHECK(there.device() == Device::cuda);
    const Tensor kept = bytes.clone();
    bytes.fill(0);  // the copy has read it
    CHECK(same_bits(there, kept));
    Tensor again = Tensor::empty({n}, Dtype::u8, Device::cuda), back = Tensor::empty({n}, Dtype::u8, Device::cpu);
    again.copy_from(there);
    back.copy_from(again);
    CHECK(same_bits(back, kept));
    if (n > 9) CHECK(same_bits(again.slice(5, n - 2).clone(), kept.slice(5, n - 2)));
  }
}

TEST_CASE("tensors that are freed while the GPU still has work with them") {
  if (!cuda_available()) return;
  Tensor x = Tensor::full({1000}, 1, Dtype::f32, Device::cuda);
  const Tensor one = Tensor::full({1000}, 1, Dtype::f32, Device::cuda);
  for (int i = 0; i < 100; ++i) {
    const Tensor noise = Tensor::full({1000}, -7, Dtype::f32, Device::cuda);  // what was x may get this memory
    x = compute::add(compute::add(x, noise), compute::sub(one, noise));
  }
  CHECK(x.to_vector<float>() == std::vector<float>(1000, 101));
}

TEST_CASE("values and random numbers are the same on both devices") {
  if (!cuda_available()) return;
  const auto same = [](auto make) { return same_bits(make(Device::cpu), make(Device::cuda)); };
  CHECK(same([](Device d) { return Tensor::arange(1000, Dtype::i32, d); }));
  CHECK(same([](Device d) { return Tensor::full({33}, 0.1, Dtype::f64, d); }));
  CHECK(same([](Device d) { return Tensor::arange(300, Dtype::f32, d).to(Dtype::f64).to(Dtype::i32); }));
  CHECK(same([](Device d) { return Generator{3, 1, 0}.normal({37, 3}, 0, 1, Dtype::f32, d); }));
  CHECK(same([](Device d) { return Generator{3, 1, 0}.uniform({37, 3}, 0, 1, Dtype::f64, d); }));
}
