// On a GPU: linear attention alone and the copy task's training step, beside what the device reads, writes and
// multiplies at best in the same process. Ends with 77 where there is no GPU.
#include <iostream>

#include "bench/support/program.h"
#include "bench/support/training_step.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/ops/linear_attention.h"

namespace {

using linnet::Device;
using linnet::Tape;
using linnet::Tensor;
using linnet::Variable;

constexpr int kNoDevice = 77;

template <class Work>
double seconds_on_gpu(const Work& work) {
  linnet::synchronize(Device::cuda);
  const auto start = std::chrono::steady_clock::now();
  work();
  linnet::synchronize(Device::cuda);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Limits {
  double bytes_per_second = 0, flops_per_second = 0;
};

/// The best of a few, of a copy and of a product of square matrices (f32, as cuBLAS does it).
Limits measure_limits(bool quick) {
  const int64_t n = quick ? 1 << 12 : 1 << 28, m = quick ? 64 : 8192;
  const Tensor x = Tensor::zeros({n}), a = Tensor::uniform({m, m});
  Tensor y = Tensor::zeros({n});
  Limits best;
  for (int i = 0; i < 5; ++i) {
    const double copying = seconds_on_gpu([&] { y.copy_from(x); });
    const double multiplying = seconds_on_gpu([&] { linnet::compute::matmul(a, a); });
    best.bytes_per_second = std::max(best.bytes_per_second, static_cast<double>(8 * n) / copying);
    best.flops_per_second = std::max(best.flops_per_second, 2.0 * static_cast<double>(m * m * m) / multiplying);
  }
  return best;
}

struct Case {
  bool backward;
  int64_t batch, time, heads, dim;

  std::string name() const {
    return bench::path({"attention", backward ? "backward" : "forward", "BH:" + std::to_string(batch * heads),
                        "N:" + std::to_string(time), "D:" + std::to_string(dim)});
  }
  /// What no form can do without: q, k, v and o once, and for the way back q, k, v, g and three gradients.
  double bytes() const { return 4.0 * static_cast<double>(batch * time * heads * dim) * (backward ? 7 : 4); }
  double flops() const { return static_cast<double>(batch * time * heads * dim * dim) * (backward ? 10 : 4); }
};

void report(benchmark::State& state, double seconds, double bytes, double flops, const Limits& limits) {
  state.counters["gbps"] = bytes / seconds * 1e-9;
  state.counters["bandwidth_percent"] = 100 * bytes / seconds / limits.bytes_per_second;
  state.counters["gflops"] = flops / seconds * 1e-9;
  state.counters["matrix_rate_percent"] = 100 * flops / seconds / limits.flops_per_second;
}

void measure_attention(benchmark::State& state, const Case& c, const Limits& limits) {
  std::vector<Variable> leaves;
  const linnet::Shape shape{c.batch, c.time, c.heads, c.dim};
  for (int i = 0; i < 3; ++i) leaves.push_back(Variable::leaf(Tensor::normal(shape)));
  const Tensor seed = Tensor::normal(shape);
  double total = 0;
  int64_t rounds = 0;
  for (auto _ : state) {
    for (Variable& leaf : leaves) leaf.clear_grad();
    Tape tape;
    Variable out;
    const double forward =
        seconds_on_gpu([&] { out = linnet::linear_attention(leaves[0], leaves[1], leaves[2], {.causal = true}); });
    const double seconds = c.backward ? seconds_on_gpu([&] { tape.backward(out, seed); }) : forward;
    state.SetIterationTime(seconds);
    total += seconds;
    ++rounds;
  }
  report(state, total / static_cast<double>(rounds), c.bytes(), c.flops(), limits);
}

void measure_step(benchmark::State& state, const bench::StepSizes& sizes, const Limits& limits) {
  bench::TrainingStep step(sizes);
  step();  // the first takes memory
  double total = 0;
  int64_t rounds = 0;
  for (auto _ : state) {
    const double seconds = seconds_on_gpu([&] { step(); });
    state.SetIterationTime(seconds);
    total += seconds;
    ++rounds;
  }
  const double seconds = total / static_cast<double>(rounds);
  state.counters["tokens_per_second"] = static_cast<double>(sizes.tokens()) / seconds;
  state.counters["matrix_rate_percent"] = 100 * sizes.gemm_flops() / seconds / limits.flops_per_second;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Program program("bench_gpu", "Linear attention and the training step on a GPU.");
  if (!linnet::cuda_available()) {
    try {
      linnet::cuda_info();
    } catch (const linnet::Error& error) {
      std::cerr << "bench_gpu: " << error.what() << "\n";
    }
    return kNoDevice;
  }
  linnet::set_default_device(Device::cuda);
  Limits limits;
  return program.run(argc, argv, [&] {
    const bool quick = program.settings().quick;
    const linnet::CudaInfo device = linnet::cuda_info();
    limits = measure_limits(quick);
    std::cout << device.name << ", " << device.memory / (1 << 20) << " MiB: " << limits.bytes_per_second * 1e-9
              << " GB/s read and written, " << limits.flops_per_second * 1e-12 << " TFLOP/s in f32\n";
    std::vector<Case> cases;
    for (int64_t dim : {32, 64, 128})
      for (bool backward : {false, true}) cases.push_back({backward, 8, 16384, 8, dim});
    if (quick) cases = {{false, 1, 70, 2, 8}, {true, 1, 70, 2, 8}};
    for (const Case& c : cases)
      program.add(c.name(), [=, &limits](benchmark::State& state) { measure_attention(state, c, limits); });
    for (auto kind : {linnet::nn::AttentionKind::linear, linnet::nn::AttentionKind::softmax}) {
      bench::StepSizes sizes;
      if (quick) sizes = {.layers = 1, .heads = 2, .dim = 16, .hidden = 16, .batch = 2, .time = 8};
      sizes.kind = kind;
      program.add(bench::path({"step", linnet::nn::name(kind)}),
                  [=, &limits](benchmark::State& state) { measure_step(state, sizes, limits); });
    }
  });
}
