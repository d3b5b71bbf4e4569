#include "translate/trainer.h"

#include <cstdio>
#include <filesystem>
#include <iostream>

#include "linnet/core/atomic_file.h"
#include "linnet/core/safetensors.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/adam.h"
#include "support/curve.h"
#include "support/predictions.h"
#include "translate/translator.h"

namespace translate {

using linnet::data::Plan;
using linnet::optim::Optimizer;

int64_t Trainer::steps_of(const Plan& plan, int64_t epochs) {
  int64_t steps = 0;
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    steps += static_cast<int64_t>(plan(static_cast<uint64_t>(epoch)).size());
  return steps;
}

Trainer::Trainer(linnet::models::EncoderDecoder& net, const linnet::data::SubwordTokenizer& tokenizer, const Data& data,
                 const Settings& settings)
    : Trainer(net, tokenizer, data, settings,
              plan_of(data.train, settings.batch_tokens, true, static_cast<uint64_t>(settings.seed))) {}

Trainer::Trainer(linnet::models::EncoderDecoder& net, const linnet::data::SubwordTokenizer& tokenizer, const Data& data,
                 const Settings& settings, const Plan& plan)
    : Training(net,
               std::make_unique<linnet::optim::Adam>(
                   net.parameters(), linnet::optim::AdamOptions{.lr = settings.lr, .beta2 = 0.98, .eps = 1e-9}),
               [&](Optimizer& optimizer) { return linnet::optim::InverseSqrt(optimizer, {.warmup = settings.warmup}); },
               {.steps = steps_of(plan, settings.epochs), .minutes = settings.minutes, .clip = settings.clip}),
      net_(net),
      tokenizer_(tokenizer),
      data_(data),
      settings_(settings),
      loader_(
          plan, [&data](int64_t i) { return data.train[static_cast<size_t>(i)]; }, make_batch),
      feed_(loader_),
      average_(net, settings.average) {}

example::Pass Trainer::pass() {
  const Batch& batch = feed_.next();
  const linnet::KeyMask keys = batch.keys();
  const linnet::Variable logits = net_(batch.source, &keys, batch.inputs);
  return {linnet::cross_entropy(logits, batch.targets,
                                {.ignore_index = example::kIgnored, .label_smoothing = settings_.smoothing}),
          example::count_correct(logits.value(), batch.targets), batch.tokens, batch.tokens};
}

void Trainer::moved() { average_.update(); }

bool Trainer::evaluation_due() const { return step() > 0 && evaluated_at_ != step() && (feed_.ends_epoch() || done()); }

void Trainer::evaluate(const example::RunDirectory& run, const example::InterruptGuard& guard) {
  const auto stop = [&] { return guard.interrupted(); };
  average_.swap();
  const double loss = mean_loss(net_, data_.val, settings_.batch_tokens, stop);
  const std::vector<std::string> translations = Translator(net_, tokenizer_)(data_.val_lines.source, {}, stop);
  const double bleu = stop() ? 0 : linnet::data::bleu(translations, data_.val_lines.target).score;
  const bool is_best = !stop() && bleu > best_bleu_;
  if (is_best) linnet::save_safetensors(run.file("model.safetensors"), net_.state_dict());
  average_.swap();
  if (stop()) return;

  if (!validation_) {
    validation_ = example::MetricsWriter::go_on(run.file("validation.csv"),
                                                {"step", "epoch", "loss", "bleu", "seconds"}, evaluated_at_);
  }
  validation_->add(step(), {static_cast<double>(epochs()), loss, bleu, seconds()});
  evaluated_at_ = step();
  if (is_best) best_bleu_ = bleu, best_epoch_ = epochs();
  char line[128];
  std::snprintf(line, sizeof line, "Epoch %lld: validation loss %.3f, BLEU %.2f%s", static_cast<long long>(epochs()),
                loss, bleu, is_best ? ", the best so far" : "");
  std::cout << line << std::endl;
}

void Trainer::save_more(linnet::StateDict& training) const {
  training.set_integer("evaluated_at", static_cast<uint64_t>(evaluated_at_));
  training.set_integer("best_epoch", static_cast<uint64_t>(best_epoch_));
  training.set_number("best_bleu", best_bleu_);
  training.add("average", average_.state_dict());
}

void Trainer::restore_more(const linnet::StateDict& training) {
  evaluated_at_ = example::count(training, "evaluated_at", 0, step());
  best_epoch_ = example::count(training, "best_epoch", 0, int64_t{1} << 31);
  best_bleu_ = training.number("best_bleu");
  LINNET_CHECK(best_bleu_ == -1 || (best_bleu_ >= 0 && best_bleu_ <= 100), "training.best_bleu is ", best_bleu_,
               ", wanted: 0 to 100, or -1");
  average_.load_state_dict(training.part("average"));
}

void Trainer::draw_curve(const example::RunDirectory& run, const std::string& subtitle) const {
  const example::MetricsTable train = example::read_metrics(run.file("metrics.csv"));
  example::Panel loss{example::Panel::Scale::loss, "loss", "nats a subword", {}};
  example::Panel bleu{example::Panel::Scale::score, "BLEU", "", {}};
  loss.lines.push_back({0, train.column("step"), train.column("loss")});
  const std::string file = run.file("validation.csv");
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    const example::MetricsTable validation = example::read_metrics(file);
    loss.lines.push_back({1, validation.column("step"), validation.column("loss")});
    bleu.lines.push_back({1, validation.column("step"), validation.column("bleu")});
  }
  const Settings& s = settings_;
  std::string text = std::to_string(s.layers) + " + " + std::to_string(s.layers) + " layers, " +
                     std::to_string(s.heads) + " heads, dim " + std::to_string(s.dim) + ", seed " +
                     std::to_string(s.seed);
  if (!subtitle.empty()) text += "; " + subtitle;
  linnet::write_file(run.file("curve.svg"),
                     example::panels_svg({loss, bleu}, {.title = "Translation " + s.source + " to " + s.target + ", " +
                                                                 s.attention + " attention",
                                                        .subtitle = text,
                                                        .names = {"training (smoothed targets)", "validation"}}));
}

}  // namespace translate
