// The same training on both devices: the copy task's sequences 0 w 0 w, a small model, every kind of attention that
// both have.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "linnet/autograd/tape.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/clip.h"
#include "linnet/optim/radam.h"
#include "support/devices.h"

using namespace linnet;

namespace {

constexpr int64_t kBatch = 4, kTime = 10, kSymbols = 5;
constexpr int kSteps = 10;

struct Batch {
  std::vector<int32_t> inputs, targets;
};

/// The loss is over the second w.
Batch copy_batch(Generator& generator) {
  Batch batch;
  for (int64_t row = 0; row < kBatch; ++row) {
    std::vector<int32_t> text{0};
    for (int64_t i = 0; i < kTime / 2 - 1; ++i) text.push_back(static_cast<int32_t>(1 + generator.below(kSymbols)));
    text.insert(text.end(), text.begin(), text.end());
    batch.inputs.insert(batch.inputs.end(), text.begin(), text.end());
    for (int64_t i = 0; i < kTime; ++i)
      batch.targets.push_back(i < kTime / 2 || i + 1 == kTime ? -1 : text[static_cast<size_t>(i + 1)]);
  }
  return batch;
}

std::vector<double> losses_on(Device device, nn::AttentionKind kind) {
  const test::OnDevice here(device);
  manual_seed(11);
  models::CausalLM net({.vocab = kSymbols + 1,
                        .dim = 16,
                        .layers = 2,
                        .heads = 2,
                        .max_time = kTime,
                        .kind = kind,
                        .window = kind == nn::AttentionKind::local ? 4 : -1,
                        .dropout = 0.1});
  optim::RAdam optimizer(net.parameters(), {.lr = 3e-3});
  Generator generator{7, 1, 0};
  std::vector<double> losses;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = copy_batch(generator);
    Tape tape;
    const Variable loss = cross_entropy(net(Tensor::from(batch.inputs, {kBatch, kTime})),
                                        Tensor::from(batch.targets, {kBatch, kTime}), {.ignore_index = -1});
    losses.push_back(loss.item());
    tape.backward(loss);
    optim::clip_grad_norm(net.parameters(), 1);
    optimizer.step();
    optimizer.clear_grads();
  }
  return losses;
}

}  // namespace

TEST_CASE("a model trains step by step to the same losses on both devices") {
  if (!cuda_available()) return;
  for (const auto kind : {nn::AttentionKind::linear, nn::AttentionKind::softmax, nn::AttentionKind::local}) {
    const std::vector<double> here = losses_on(Device::cpu, kind), there = losses_on(Device::cuda, kind);
    for (size_t i = 0; i < here.size(); ++i) {
      INFO("step ", i);
      CHECK(std::abs(here[i] - there[i]) <= 1e-4 * here[i]);
    }
  }
}
