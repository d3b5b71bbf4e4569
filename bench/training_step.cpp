// The copy task's training step in the paper's setting (support/training_step.h), on the CPU.
#include "bench/support/training_step.h"
#include "bench/support/gemm_count.h"
#include "bench/support/memory.h"
#include "bench/support/meter.h"
#include "bench/support/program.h"

namespace {

using bench::StepSizes;
using bench::TrainingStep;

void measure(benchmark::State& state, const StepSizes& sizes, int threads) {
  const bench::MemoryMark memory;
  TrainingStep step(sizes);
  step();  // the first takes memory from the system
  bench::Meter meter(state, threads);
  bench::reset_gemm_count();
  int64_t steps = 0;
  for (auto _ : state) {
    meter.iteration(bench::seconds_of([&] { step(); }));
    ++steps;
  }
  const bench::GemmCount gemm = bench::gemm_count();
  meter.finish(sizes.gemm_flops());
  state.counters["tokens_per_second"] = static_cast<double>(sizes.tokens()) / meter.seconds();
  memory.report(state);
  if (gemm.flops < 0.99 * sizes.gemm_flops() * static_cast<double>(steps))
    return state.SetLabel("not all GEMMs were seen");
  state.counters["gemm_percent"] = bench::Meter::percent(gemm.seconds, meter.seconds() * static_cast<double>(steps));
  state.counters["gemm_peak_percent"] = bench::Meter::percent(gemm.flops / gemm.seconds * 1e-9, meter.peak());
}

linnet::StateDict dump(const StepSizes& sizes) {
  TrainingStep step(sizes);
  linnet::StateDict all;
  all.set("inputs", step.batch.inputs);
  all.set("targets", step.batch.targets);
  all.add("before", step.net.state_dict().clone());
  step.forward_backward();
  all.set("logits", step.logits);
  all.set("loss", step.loss);
  for (const auto& [name, parameter] : step.net.named_parameters()) all.set("grad." + name, parameter.grad().clone());
  step.optimizer.step();
  step.optimizer.clear_grads();
  for (int i = 1; i < 8; ++i) step();  // RAdam's sixth is the first with an adaptive rate
  all.set("last_loss", step.loss);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Program program("bench_training_step", "The copy task's training step in the paper's setting.");
  bool gelu = false;
  program.app.add_flag("--gelu", gelu, "GELU in the feed-forward nets instead of ReLU");
  return program.run(argc, argv, [&] {
    for (auto kind : {linnet::nn::AttentionKind::linear, linnet::nn::AttentionKind::softmax}) {
      StepSizes sizes;
      if (program.settings().quick) sizes = {.layers = 1, .heads = 2, .dim = 32, .hidden = 32, .batch = 2, .time = 16};
      sizes.kind = kind;
      sizes.gelu = gelu;
      program.add(
          linnet::nn::name(kind),
          [=, &program](benchmark::State& state) { measure(state, sizes, program.settings().threads); },
          [=] { return dump(sizes); });
    }
  });
}
