// The paper's figure 1: time and peak memory of forward and backward, per sample, as sequences grow. Causal attention
// alone, 8 heads of 32, read from one fused projection; the batch shrinks as the length grows.
#include <iostream>

#include "bench/support/memory.h"
#include "bench/support/meter.h"
#include "bench/support/program.h"
#include "bench/support/scaling_chart.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/ops/linear_attention.h"
#include "linnet/ops/softmax_attention.h"

namespace {

using linnet::Variable;

constexpr int64_t kHeads = 8, kDim = 32;

struct Case {
  std::string kind;
  int64_t time, batch;

  double flops() const {  // as in attention.cpp; softmax: the lower triangle of two products, and of five backward
    const double rows = static_cast<double>(batch * kHeads * time), width = static_cast<double>(kDim);
    return kind == "linear" ? rows * 14 * width * width : rows * 7 * static_cast<double>(time + 1) * width;
  }
};

struct Work {
  explicit Work(const Case& c) : linear(c.kind == "linear") {
    linnet::Generator generator{.seed = 1};
    qkv = Variable::leaf(generator.normal({c.batch, c.time, 3, kHeads, kDim}, 0, 1));
    seed = generator.normal({c.batch, c.time, kHeads, kDim}, 0, 1);
  }
  void operator()() {
    qkv.clear_grad();
    out = {};  // before its successor is made
    linnet::Tape tape;
    const Variable y = linear ? linear_attention_qkv(qkv, {.causal = true, .eps = 1e-6})
                              : softmax_attention_qkv(qkv, {.causal = true});
    tape.backward(y, seed);
    out = y.value();
  }

  bool linear;
  Variable qkv;
  linnet::Tensor seed, out;
};

void measure(benchmark::State& state, const Case& c, int threads, bench::ScalingChart& chart) {
  const bench::MemoryMark memory;
  Work work(c);
  // The first takes memory from the system: next to nothing beside the time of softmax over long sequences.
  if (work.linear || c.time <= 4096) work();
  bench::Meter meter(state, threads);
  for (auto _ : state) meter.iteration(bench::seconds_of([&] { work(); }));
  meter.finish(c.flops());
  const double seconds = meter.seconds() / static_cast<double>(c.batch);
  const double bytes = memory.tensor_bytes() / static_cast<double>(c.batch);
  state.counters["ms_per_sample"] = 1e3 * seconds;
  state.counters["bytes_per_sample"] = bytes;
  memory.report(state);
  chart.add(c.kind, c.time, seconds, bytes);
}

linnet::StateDict dump(const Case& c) {
  Work work(c);
  work();
  linnet::StateDict all;
  all.set("qkv", work.qkv.value());
  all.set("seed", work.seed);
  all.set("out", work.out);
  all.set("dqkv", work.qkv.grad());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Program program("bench_scaling", "Time and memory of attention, per sample, as sequences grow.", 3);
  int64_t from = 512, to_softmax = 65536, to_linear = 1 << 20, tokens = 65536;
  std::string svg;
  program.app.add_option("--svg", svg, "draw the result into this file");
  program.app.add_option("--to-softmax", to_softmax, "the longest sequence for softmax attention (65536)");
  program.app.add_option("--to-linear", to_linear, "the longest sequence for linear attention (1048576)");
  program.app.add_option("--tokens", tokens, "in a batch, as long as a sequence is shorter (65536)");
  bench::ScalingChart chart;
  return program.run(
      argc, argv,
      [&] {
        if (program.settings().quick) from = 16, to_softmax = 32, to_linear = 64, tokens = 64;
        for (const std::string kind : {"linear", "softmax"})
          for (int64_t time = from; time <= (kind == "linear" ? to_linear : to_softmax); time *= 2) {
            const Case c{kind, time, std::max<int64_t>(1, tokens / time)};
            program.add(
                bench::path({kind, "N:" + std::to_string(time)}),
                [=, &program, &chart](benchmark::State& state) {
                  measure(state, c, program.settings().threads, chart);
                },
                [=] { return dump(c); });
          }
      },
      [&] {
        std::cout << "\n" << chart.table();
        if (!svg.empty()) chart.save(svg, program.settings().threads);
      });
}
