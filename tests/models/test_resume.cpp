// Training that is saved, ended and resumed from a checkpoint goes on bit for bit (CK10): gradients accumulated over
// two batches, shuffled data, dropout, a schedule.
#include <doctest/doctest.h>

#include <cmath>

#include "linnet/autograd/tape.h"
#include "linnet/core/checkpoint.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/ops/elementwise.h"
#include "linnet/optim/clip.h"
#include "linnet/optim/radam.h"
#include "linnet/optim/schedule.h"
#include "support/devices.h"
#include "support/temp_dir.h"

using namespace linnet;

namespace {

/// All that a training run holds. The losses of its steps are what the test compares.
struct Run {
  models::CausalLM net{{.vocab = 7, .dim = 8, .layers = 1, .heads = 2, .max_time = 6, .dropout = 0.2}};
  optim::RAdam optimizer{net.parameters(), {.lr = 1e-2, .weight_decay = 0.01}};
  optim::Cosine schedule{optimizer, {.steps = 20, .warmup = 3}};
  Generator data{5, 1, 0};

  double step() {
    optimizer.clear_grads();
    double total = 0;
    for (int part = 0; part < 2; ++part) {
      std::vector<int32_t> tokens, targets;
      for (int64_t i = 0; i < 18; ++i) {
        tokens.push_back(static_cast<int32_t>(data.below(7)));
        targets.push_back(static_cast<int32_t>(data.below(7)));
      }
      Tape tape;
      const Variable loss = cross_entropy(net(Tensor::from(tokens, {3, 6})), Tensor::from(targets, {3, 6})) * 0.5;
      total += loss.item();
      tape.backward(loss);
    }
    optim::clip_grad_norm(net.parameters(), 1);
    optimizer.step();
    schedule.step();
    return total;
  }

  void save(const std::string& path) const {
    save_checkpoint(path, {{"model", net.state_dict()},
                           {"optimizer", optimizer.state_dict()},
                           {"schedule", schedule.state_dict()},
                           {"data", state_dict(data)},
                           {"random", state_dict(default_generator())}});
  }
  void load(const std::string& path) {
    const StateDict saved = load_checkpoint(path);
    net.load_state_dict(saved.part("model"));
    optimizer.load_state_dict(saved.part("optimizer"));
    schedule.load_state_dict(saved.part("schedule"));
    load_state_dict(data, saved.part("data"));
    load_state_dict(default_generator(), saved.part("random"));
  }
};

std::vector<double> losses(Run& run, int steps) {
  std::vector<double> list;
  for (int i = 0; i < steps; ++i) list.push_back(run.step());
  return list;
}

}  // namespace

TEST_CASE("twenty steps equal ten, a checkpoint, and ten more in a fresh run") {
  const test_support::TempDir dir;
  manual_seed(3);
  Run whole;
  const std::vector<double> wanted = losses(whole, 20);

  manual_seed(3);
  std::vector<double> got;
  {
    Run first;
    got = losses(first, 10);
    first.save(dir / "checkpoint");
  }
  manual_seed(99);  // other initial weights and another dropout, until the checkpoint is loaded
  Run second;
  second.load(dir / "checkpoint");
  for (double loss : losses(second, 10)) got.push_back(loss);
  CHECK(got == wanted);
  const StateDict a = second.net.state_dict(), b = whole.net.state_dict();
  for (const auto& [name, tensor] : a.tensors()) {
    CAPTURE(name);
    CHECK(tensor.to_vector<float>() == b.get(name).to_vector<float>());
  }
  CHECK(wanted[19] != wanted[9]);
}

TEST_CASE("a checkpoint of one device goes on on the other") {
  if (!cuda_available()) return;
  for (const Device first : {Device::cpu, Device::cuda}) {
    const test_support::TempDir dir;
    std::vector<double> wanted, got;
    {
      const test::OnDevice here(first);
      manual_seed(3);
      Run whole;
      wanted = losses(whole, 8);
      manual_seed(3);
      Run part;
      got = losses(part, 4);
      part.save(dir / "checkpoint");
    }
    const test::OnDevice there(test::other_than(first));
    manual_seed(99);
    Run second;
    second.load(dir / "checkpoint");
    for (double loss : losses(second, 4)) got.push_back(loss);
    for (size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) <= 1e-5 * wanted[i]);
  }
}
