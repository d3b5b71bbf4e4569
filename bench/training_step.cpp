// The copy task's training step in the paper's setting: 4 layers, 8 heads of 32, feed-forward 1024, 64 sequences of 128
// tokens, vocabulary 12, the loss on the second half, RAdam, no clipping. Blocks are post-norm, as the paper's are.
#include "bench/support/gemm_count.h"
#include "bench/support/memory.h"
#include "bench/support/meter.h"
#include "bench/support/program.h"
#include "copy_task/data.h"
#include "linnet/autograd/tape.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/radam.h"

namespace {

using linnet::Tensor;
using linnet::Variable;

struct Sizes {
  int64_t layers = 4, heads = 8, dim = 256, hidden = 1024, batch = 64, time = 128;
  bool gelu = false;
  linnet::nn::AttentionKind kind = linnet::nn::AttentionKind::linear;

  int64_t tokens() const { return batch * time; }
  copy_task::TaskSize task() const { return {time + 1, 10}; }
  linnet::models::CausalLMOptions model() const {
    return {.vocab = 12,
            .dim = dim,
            .layers = layers,
            .heads = heads,
            .hidden = hidden,
            .max_time = time,
            .kind = kind,
            .pre_norm = false,
            .activation = gelu ? linnet::nn::Activation::gelu : linnet::nn::Activation::relu,
            .eps = 1e-6};
  }
  /// Of all GEMMs in a step: each weight of a linear layer meets each token three times.
  double gemm_flops() const {
    return 6.0 * static_cast<double>(tokens() * (layers * (4 * dim * dim + 2 * dim * hidden) + 12 * dim));
  }
};

class Step {
 public:
  explicit Step(const Sizes& sizes)
      : net(sizes.model()),
        optimizer(net.parameters(), {.lr = 1e-3}),
        batch(copy_task::make_batch(sizes.task(), sizes.batch, 1, copy_task::Stream::training, 0)) {}

  void forward_backward() {
    linnet::Tape tape;
    const Variable out = net(batch.inputs);
    const Variable mean = linnet::cross_entropy(out, batch.targets, {.ignore_index = example::kIgnored});
    tape.backward(mean);
    logits = out.value();
    loss = mean.value();
  }
  void operator()() {
    forward_backward();
    logits = {};
    optimizer.step();
    optimizer.clear_grads();
  }

  linnet::models::CausalLM net;
  linnet::optim::RAdam optimizer;
  copy_task::Batch batch;
  Tensor logits, loss;
};

void measure(benchmark::State& state, const Sizes& sizes, int threads) {
  const bench::MemoryMark memory;
  Step step(sizes);
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

linnet::StateDict dump(const Sizes& sizes) {
  Step step(sizes);
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
      Sizes sizes;
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
