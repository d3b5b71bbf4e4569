// Streams, events, memory, shared-memory limits, warp functions and cuBLAS, where they are used as they should be.
#include <doctest/doctest.h>

#include "cuda_on_cpu/device_array.h"
#include "cuda_on_cpu/kernels/kernels.h"

using cuda_on_cpu::Order;
using Floats = std::vector<float>;

namespace {

constexpr int kSize = 64;

struct Streams {
  Streams() {
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  }
  ~Streams() {
    cudaStreamDestroy(one);
    cudaStreamDestroy(other);
  }
  cudaStream_t one, other;
};

__global__ void lanes(int* up, int* down, int* narrow, unsigned* ballots, int* counts) {
  const int i = threadIdx.x;
  up[i] = __shfl_up_sync(0xffffffffu, i, 3);
  down[i] = __shfl_down_sync(0xffffffffu, i, 5, 16);
  narrow[i] = __shfl_sync(0xffffffffu, i, 2, 8);
  ballots[i] = __ballot_sync(0xffffffffu, i % 32 < 4) + (__any_sync(0xffffffffu, i == 70) ? 256 : 0) +
               (__all_sync(0xffffffffu, i >= 32) ? 512 : 0);
  counts[i] = __syncthreads_count(i % 2 == 0) + (__syncthreads_or(i == 95) ? 1000 : 0) +
              (__syncthreads_and(i < 95) ? 10000 : 0);
}

__global__ void early_end(int* y, int* turns, int* turn) {
  if (threadIdx.x >= 40) return;  // the barrier is for those that are left
  __syncthreads();
  const int block = blockIdx.y * gridDim.x + blockIdx.x;
  y[block * blockDim.x + threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) turns[block] = atomicAdd(turn, 1);
}

__global__ void use_all(float* y) {
  CUDA_DYNAMIC_SHARED(float, all);
  for (int i = threadIdx.x; i < 16 * 1024; i += blockDim.x) all[i] = float(i);
  __syncthreads();
  if (threadIdx.x == 0) y[0] = all[16 * 1024 - 1];
}

}  // namespace

TEST_CASE("work runs when the host waits for it, and not before") {
  const Streams streams;
  const DeviceArray<float> y(Floats(kSize, 1));
  const uint64_t threads = cuda_on_cpu::counts().threads;
  kernels::axpy(1, y.data(), y.data(), kSize, streams.one);
  CHECK(cudaStreamQuery(streams.one) == cudaErrorNotReady);
  CHECK(cudaStreamSynchronize(streams.other) == cudaSuccess);
  CHECK(cuda_on_cpu::counts().threads == threads);
  CHECK(y.values(streams.one) == Floats(kSize, 2));
  CHECK(cudaStreamQuery(streams.one) == cudaSuccess);
  CHECK(cuda_on_cpu::counts().threads == threads + 128);
}

TEST_CASE("an event orders two streams, as far as it was recorded") {
  const Streams streams;
  const DeviceArray<float> x(Floats(kSize, 1)), y(Floats(kSize, 0));
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  kernels::axpy(1, x.data(), x.data(), kSize, streams.one);  // 2
  cudaEventRecord(event, streams.one);
  kernels::axpy(1, x.data(), x.data(), kSize, streams.one);  // 4, after the event
  cudaStreamWaitEvent(streams.other, event);
  kernels::axpy(1, x.data(), y.data(), kSize, streams.other);
  CHECK(cudaEventQuery(event) == cudaErrorNotReady);
  CHECK(y.values(streams.other) == Floats(kSize, 2));
  CHECK(cudaEventQuery(event) == cudaSuccess);
  CHECK(x.values(streams.one) == Floats(kSize, 4));
  cudaEventDestroy(event);
}

TEST_CASE("the default stream and a blocking one wait for each other") {
  cudaStream_t blocking;
  cudaStreamCreate(&blocking);
  const DeviceArray<float> x(Floats(kSize, 1));
  kernels::axpy(1, x.data(), x.data(), kSize, blocking);
  kernels::axpy(1, x.data(), x.data(), kSize, nullptr);
  kernels::axpy(1, x.data(), x.data(), kSize, blocking);
  CHECK(x.values(blocking) == Floats(kSize, 8));
  cudaStreamDestroy(blocking);
}

TEST_CASE("an event tells the time, once it has come") {
  cudaEvent_t from, to;
  cudaEventCreate(&from);
  cudaEventCreate(&to);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  cudaEventRecord(from);
  cudaEventRecord(to);
  CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(to) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, from, to) == cudaSuccess);
  CHECK(milliseconds >= 0);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
}

TEST_CASE("memory: counted, given back in order, refused where there is none") {
  size_t before, during, after, total;
  cudaMemGetInfo(&before, &total);
  float* p;
  CHECK(cudaMallocAsync(&p, 1000, nullptr) == cudaSuccess);
  cudaMemGetInfo(&during, &total);
  CHECK(before - during == 1000);
  CHECK(cudaFreeAsync(p, nullptr) == cudaSuccess);
  cudaDeviceSynchronize();
  cudaMemGetInfo(&after, &total);
  CHECK(after == before);
  CHECK(cudaMalloc(&p, 0) == cudaSuccess);
  CHECK(p == nullptr);
#if !defined(CUDA_ON_CPU_ADDRESS)  // there the system's own limit holds
  CHECK(cudaMalloc(&p, total + 1) == cudaErrorMemoryAllocation);
#endif
}

TEST_CASE("after an error nothing runs until it is taken") {
  const DeviceArray<float> y(Floats(kSize, 1));
  kernels::axpy(1, y.data(), y.data(), 0, nullptr);  // an empty grid
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaMemset(y.data(), 0, kSize) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(y.values() == Floats(kSize, 1));
}

TEST_CASE("the functions of a warp and of a block") {
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    cuda_on_cpu::set_order(order);
    const int n = 96;
    const DeviceArray<int> up(n), down(n), narrow(n), counts(n);
    const DeviceArray<unsigned> ballots(n);
    launch(lanes, 1, n, 0, nullptr, up.data(), down.data(), narrow.data(), ballots.data(), counts.data());
    for (int i = 0; i < n; ++i) {
      CHECK(up.values()[i] == (i % 32 < 3 ? i : i - 3));
      CHECK(down.values()[i] == (i % 16 + 5 < 16 ? i + 5 : i));
      CHECK(narrow.values()[i] == i / 8 * 8 + 2);
      CHECK(ballots.values()[i] == 15u + (i >= 64 ? 256u : 0u) + (i >= 32 ? 512u : 0u));
      CHECK(counts.values()[i] == 48 + 1000);
    }
  }
  cuda_on_cpu::set_order(Order::forward);
}

TEST_CASE("threads that have ended are not waited for, and blocks run in the order that is set") {
  std::vector<std::vector<int>> orders;
  for (Order order : {Order::forward, Order::reverse, Order::random}) {
    cuda_on_cpu::set_order(order);
    const DeviceArray<int> y(6 * kSize), turns(6), turn(std::vector<int>{0});
    launch(early_end, dim3(2, 3), kSize, 0, nullptr, y.data(), turns.data(), turn.data());
    const std::vector<int> values = y.values();
    CHECK(cudaGetLastError() == cudaSuccess);
    for (int i = 0; i < 6 * kSize; ++i) CHECK(values[i] == (i % kSize < 40 ? i % kSize : -1));  // -1: a pattern of ones
    orders.push_back(turns.values());
  }
  CHECK(orders[0] == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(orders[1] == std::vector<int>{5, 4, 3, 2, 1, 0});
  CHECK((orders[2] != orders[0] && orders[2] != orders[1]));
  cuda_on_cpu::set_order(Order::forward);
}

TEST_CASE("more shared memory than 48 KiB is had by asking") {
  const DeviceArray<float> y(size_t{1});
  CHECK(cudaFuncSetAttribute(use_all, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10) == cudaSuccess);
  launch(use_all, 1, 32, 64 << 10, nullptr, y.data());
  CHECK(y.values()[0] == 16 * 1024 - 1);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("batched products in f64, with a transpose, strides and beta") {
  const int m = 3, n = 2, k = 4, batch = 2;
  std::vector<double> a(k * m * batch), b(k * n * batch), c(m * n * batch, 10), wanted(c);
  for (size_t i = 0; i < a.size(); ++i) a[i] = double(i % 7) - 3;
  for (size_t i = 0; i < b.size(); ++i) b[i] = double(i % 5) - 2;
  for (int s = 0; s < batch; ++s)
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int l = 0; l < k; ++l) sum += a[s * k * m + i * k + l] * b[s * k * n + j * k + l];
        double& at = wanted[s * m * n + j * m + i];
        at = 2 * sum + 0.5 * at;
      }
  const DeviceArray<double> da(a), db(b), dc(c);
  cublasHandle_t handle;
  cublasCreate(&handle);
  const double alpha = 2, beta = 0.5;
  CHECK(cublasDgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, da.data(), k, k * m, db.data(), k,
                                  k * n, &beta, dc.data(), m, m * n, batch) == CUBLAS_STATUS_SUCCESS);
  CHECK(dc.values() == wanted);
  CHECK(cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, da.data(), m - 1, db.data(), k, &beta, dc.data(),
                    m) == CUBLAS_STATUS_INVALID_VALUE);
  cublasDestroy(handle);
}
