// The copy task's training step in the paper's setting: 4 layers, 8 heads of 32, feed-forward 1024, 64 sequences of 128
// tokens, vocabulary 12, the loss on the second half, RAdam, no clipping. Blocks are post-norm, as the paper's are.
#pragma once
#include "copy_task/data.h"
#include "linnet/autograd/tape.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/radam.h"

namespace bench {

struct StepSizes {
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

/// On the default device.
class TrainingStep {
 public:
  explicit TrainingStep(const StepSizes& sizes)
      : net(sizes.model()),
        optimizer(net.parameters(), {.lr = 1e-3}),
        batch(copy_task::make_batch(sizes.task(), sizes.batch, 1, copy_task::Stream::training, 0)) {
    batch.inputs = batch.inputs.to(linnet::default_device());
    batch.targets = batch.targets.to(linnet::default_device());
  }

  void forward_backward() {
    linnet::Tape tape;
    const linnet::Variable out = net(batch.inputs);
    const linnet::Variable mean = linnet::cross_entropy(out, batch.targets, {.ignore_index = example::kIgnored});
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
  linnet::Tensor logits, loss;
};

}  // namespace bench
