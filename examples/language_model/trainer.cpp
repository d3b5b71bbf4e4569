#include "language_model/trainer.h"

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "language_model/evaluation.h"
#include "linnet/core/atomic_file.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/adam.h"
#include "support/curve.h"
#include "support/predictions.h"

namespace language_model {

using linnet::optim::Optimizer;

namespace {
constexpr int64_t kParts = 128;  // of the held-out text, for a look on the way
}  // namespace

Trainer::Trainer(linnet::models::CausalLM& net, const Corpus& corpus, const Settings& settings)
    : Training(
          net,
          std::make_unique<linnet::optim::AdamW>(
              net.parameters(),
              linnet::optim::AdamWOptions{.lr = settings.lr, .beta2 = 0.99, .weight_decay = settings.weight_decay}),
          [&](Optimizer& optimizer) {
            return linnet::optim::Cosine(optimizer,
                                         {.steps = settings.steps, .warmup = settings.warmup, .floor = 0.02});
          },
          {.steps = settings.steps, .minutes = settings.minutes, .clip = settings.clip}),
      net_(net),
      corpus_(corpus),
      settings_(settings) {}

example::Pass Trainer::pass() {
  const Batch batch =
      make_batch(corpus_, settings_.context, settings_.batch, static_cast<uint64_t>(settings_.seed), step());
  const linnet::Variable logits = net_(batch.inputs);
  const int64_t tokens = batch.targets.numel();
  return {linnet::cross_entropy(logits, batch.targets), example::count_correct(logits.value(), batch.targets), tokens,
          tokens};
}

bool Trainer::evaluation_due() const {
  return step() > 0 && evaluated_at_ != step() && (step() % settings_.evaluate_every == 0 || done());
}

void Trainer::evaluate(const example::RunDirectory& run, const example::InterruptGuard& guard) {
  const auto stop = [&] { return guard.interrupted(); };
  const double bits = bits_per_character(net_, corpus_, settings_.context, kParts, stop);
  if (stop()) return;
  const bool is_best = best_step_ == 0 || bits < best_bits_;
  if (is_best) linnet::save_safetensors(run.file("model.safetensors"), net_.state_dict());
  if (!validation_) {
    validation_ = example::MetricsWriter::go_on(run.file("validation.csv"), {"step", "bits_per_character", "seconds"},
                                                evaluated_at_);
  }
  validation_->add(step(), {bits, seconds()});
  evaluated_at_ = step();
  if (is_best) best_bits_ = bits, best_step_ = step();
  char line[128];
  std::snprintf(line, sizeof line, "Step %lld: %.3f bits a held-out character%s", static_cast<long long>(step()), bits,
                is_best ? ", the best so far" : "");
  std::cout << line << std::endl;
}

void Trainer::save_more(linnet::StateDict& training) const {
  training.set_integer("evaluated_at", static_cast<uint64_t>(evaluated_at_));
  training.set_integer("best_step", static_cast<uint64_t>(best_step_));
  training.set_number("best_bits", best_bits_);
}

void Trainer::restore_more(const linnet::StateDict& training) {
  evaluated_at_ = example::count(training, "evaluated_at", 0, step());
  best_step_ = example::count(training, "best_step", 0, evaluated_at_);
  best_bits_ = example::amount(training, "best_bits");
}

void Trainer::draw_curve(const example::RunDirectory& run, const std::string& subtitle) const {
  const example::MetricsTable train = example::read_metrics(run.file("metrics.csv"));
  example::Panel loss{example::Panel::Scale::loss, "loss", "nats a token", {}};
  example::Panel bits{example::Panel::Scale::loss, "held-out text", "bits a character", {}};
  loss.lines.push_back({0, train.column("step"), train.column("loss")});
  const std::string file = run.file("validation.csv");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    const example::MetricsTable validation = example::read_metrics(file);
    bits.lines.push_back({1, validation.column("step"), validation.column("bits_per_character")});
  }
  const Settings& s = settings_;
  std::string text = std::to_string(s.layers) + " layers, " + std::to_string(s.heads) + " heads, dim " +
                     std::to_string(s.dim) + ", context " + std::to_string(s.context) + ", seed " +
                     std::to_string(s.seed);
  if (!subtitle.empty()) text += "; " + subtitle;
  linnet::write_file(run.file("curve.svg"),
                     example::panels_svg({loss, bits}, {.title = "Language model, " + s.attention + " attention",
                                                        .subtitle = text,
                                                        .names = {"training", "held-out text"}}));
}

}  // namespace language_model
