#include "cuda_on_cpu/defects.h"

#include <cstdio>

#include "cuda_on_cpu/device_array.h"
#include "cuda_on_cpu/kernels/bad_kernels.h"
#include "cuda_on_cpu/kernels/kernels.h"

namespace {

using Floats = std::vector<float>;
constexpr int kSize = 64;
const Floats kOnes(kSize, 1);

__global__ void nothing(float*) {}

// nvcc refuses this one, too.
__global__ void declare_much(float* y) {
  CUDA_SHARED(float, most, [12 * 1024]);
  CUDA_SHARED(float, rest, [64]);
  most[threadIdx.x] = rest[threadIdx.x] = y[threadIdx.x];
}

// A y that every good version of a kernel would leave, for x = 1 2 3 ..., and the y it begins with.
struct Values {
  Floats before = Floats(kSize, 0), after;
};
Values values_of(const std::string& name) {
  Values values;
  for (int i = 0; i < kSize; ++i) {
    float x = float(i + 1);
    if (name == "no_sync_after_write") x = float(kSize - i);
    if (name == "no_sync_before_reuse") x = 4 * 32 * 65;
    if (name == "no_sync_in_matmul") x = float(i / 8 * 64 + 36);
    if (name == "no_atomic") x *= 4;
    if (name == "no_fence") x = i < 4 ? 1.f : i == 32 ? 4.f : 0.f;
    if (name == "no_order_of_blocks") x = i < 4 ? x : 0;
    if (name == "global_past_end") x = float(i);
    if (name == "global_read_past_end") x = float(i + 2);
    if (name == "lock_step") x = float((i ^ 1) + 1);
    if (name == "wmma_lock_step") x = i < 32 ? 16.f : 0.f;
    values.after.push_back(x);
  }
  if (name == "no_fence") values.after[63] = __uint_as_float(4);
  return values;
}

int say(const Floats& got, const Floats& wanted) {
  std::puts(got == wanted ? "right values" : "wrong values");
  return 0;
}

int run_bad_kernel(const std::string& name) {
  const Values values = values_of(name);
  Floats x;
  for (int i = 0; i < kSize; ++i) x.push_back(float(i + 1));
  const DeviceArray<float> dx(x), dy(values.before);
  if (!kernels::launch_bad(name, dx.data(), dy.data(), nullptr)) return 2;
  return say(dy.values(), values.after);
}

cudaStream_t new_stream() {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  return stream;
}

int launch_nothing(dim3 grid, dim3 block, size_t bytes) {
  launch(nothing, grid, block, bytes, nullptr, nullptr);
  return 0;
}

int host_reads_device() {
  const DeviceArray<float> y(kOnes);
  return say({*static_cast<volatile float*>(y.data())}, {1});
}

int host_pointer() {
  Floats x = kOnes, y = kOnes;
  kernels::axpy(1, x.data(), y.data(), kSize, nullptr);
  cudaDeviceSynchronize();
  return say(y, kOnes);
}

struct Pair {
  const float* x;
  float* y;
};
__global__ void copy_pair(Pair of) { of.y[threadIdx.x] = of.x[threadIdx.x]; }

// What it reads is no wrong number: on a GPU the kernel would fail.
int host_pointer_in_struct() {
  const Floats x = kOnes;
  const DeviceArray<float> y(Floats(kSize, 0));
  launch(copy_pair, 1, kSize, 0, nullptr, Pair{x.data(), y.data()});
  cudaDeviceSynchronize();
  return say(y.values(), kOnes);
}

template <class F>
__global__ void call(F f) {
  f(threadIdx.x);
}

int host_reference_in_lambda() {
  const DeviceArray<float> y(Floats(kSize, 0));
  const float two = 2;
  float* to = y.data();
  const auto write = [=, &two](unsigned i) { to[i] = two; };
  launch(call<decltype(write)>, 1, kSize, 0, nullptr, write);
  cudaDeviceSynchronize();
  return say(y.values(), Floats(kSize, 2));
}

int freed_memory() {
  float* freed = DeviceArray<float>(kOnes).data();
  kernels::axpy(1, freed, freed, kSize, nullptr);
  cudaDeviceSynchronize();
  return 0;
}

int no_stream_sync() {
  Floats host(kSize, 7);
  const cudaStream_t stream = new_stream();
  const DeviceArray<float> y(kOnes);
  kernels::axpy(2, y.data(), y.data(), kSize, stream);
  cudaMemcpyAsync(host.data(), y.data(), kSize * sizeof(float), cudaMemcpyDeviceToHost, stream);
  return say(host, Floats(kSize, 3));
}

int no_event() {
  const cudaStream_t one = new_stream(), other = new_stream();
  const DeviceArray<float> x(kOnes), y(Floats(kSize, 0));
  kernels::axpy(1, x.data(), x.data(), kSize, one);
  kernels::axpy(1, x.data(), y.data(), kSize, other);
  return say(y.values(other), Floats(kSize, 2));
}

int new_memory() {
  const DeviceArray<float> y(kSize);
  return say(y.values(), Floats(kSize, 0));
}

int copy_too_long() {
  const DeviceArray<float> y(kSize / 2);
  cudaMemcpy(y.data(), kOnes.data(), kSize * sizeof(float), cudaMemcpyHostToDevice);
  return 0;
}

int copy_wrong_way() {
  const DeviceArray<float> y(kOnes);
  cudaMemcpy(y.data(), kOnes.data(), kSize * sizeof(float), cudaMemcpyDeviceToHost);
  return 0;
}

int freed_twice() {
  float* freed = DeviceArray<float>(kOnes).data();
  cudaFree(freed);
  return 0;
}

int gemm_past_end() {
  cublasHandle_t handle;
  cublasCreate(&handle);
  const DeviceArray<float> a(kOnes), b(Floats(56, 1)), c(kOnes);
  const float one = 1;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, 8, 8, 8, &one, a.data(), 8, b.data(), 8, &one, c.data(), 8);
  cudaDeviceSynchronize();
  cublasDestroy(handle);
  return 0;
}

int declares_much() {
  const DeviceArray<float> y(kOnes);
  launch(declare_much, 1, kSize, 0, nullptr, y.data());
  cudaDeviceSynchronize();
  return 0;
}

int asked_too_much() {
  cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 256 << 10);
  return 0;
}

}  // namespace

int run_defect(const std::string& name) {
  const struct {
    const char* name;
    int (*run)();
  } all[] = {
      {"host_reads_device", host_reads_device},
      {"host_pointer", host_pointer},
      {"host_pointer_in_struct", host_pointer_in_struct},
      {"host_reference_in_lambda", host_reference_in_lambda},
      {"freed_memory", freed_memory},
      {"no_stream_sync", no_stream_sync},
      {"no_event", no_event},
      {"new_memory", new_memory},
      {"copy_too_long", copy_too_long},
      {"copy_wrong_way", copy_wrong_way},
      {"freed_twice", freed_twice},
      {"gemm_past_end", gemm_past_end},
      {"declares_much", declares_much},
      {"empty_grid", [] { return launch_nothing(0, 32, 0); }},
      {"high_grid", [] { return launch_nothing(dim3(1, 65536), 32, 0); }},
      {"large_block", [] { return launch_nothing(1, dim3(1024, 2), 0); }},
      {"much_shared", [] { return launch_nothing(1, 32, (48 << 10) + 1); }},
      {"asked_too_much", asked_too_much},
  };
  for (const auto& defect : all)
    if (name == defect.name) return defect.run();
  return run_bad_kernel(name);
}
