#include "copy_task/trainer.h"

#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/radam.h"
#include "support/curve.h"
#include "support/predictions.h"

namespace copy_task {

using linnet::optim::Optimizer;

Trainer::Trainer(linnet::models::CausalLM& net, const Settings& settings)
    : Training(
          net,
          std::make_unique<linnet::optim::RAdam>(
              net.parameters(), linnet::optim::RAdamOptions{.lr = settings.lr, .weight_decay = settings.weight_decay}),
          [&](Optimizer& optimizer) { return linnet::optim::StepDrop(optimizer, {.at = {settings.lr_drop_at}}); },
          {.steps = settings.steps, .clip = settings.clip}),
      net_(net),
      settings_(settings),
      size_{settings.length, settings.symbols},
      device_(settings.device == "cuda" ? linnet::Device::cuda : linnet::Device::cpu) {}

example::Pass Trainer::pass() {
  const Batch batch = make_batch(size_, settings_.batch, static_cast<uint64_t>(settings_.seed), Stream::training,
                                 static_cast<uint64_t>(step()));
  const linnet::Tensor targets = batch.targets.to(device_);
  const linnet::Variable logits = net_(batch.inputs.to(device_));
  return {linnet::cross_entropy(logits, targets, {.ignore_index = example::kIgnored}),
          example::count_correct(logits.value(), targets), batch.counted, settings_.batch * (settings_.length - 1)};
}

void Trainer::check(const Window& window) const {
  const int64_t strings = window.steps * settings_.batch;
  const int64_t least = strings * size_.shortest(), most = strings * size_.longest();
  LINNET_CHECK(window.counted >= least && window.counted <= most, "training.counted is ", window.counted,
               ", wanted: ", least, " to ", most);
}

void Trainer::draw_curve(const example::RunDirectory& run, const std::string& subtitle) const {
  const example::MetricsTable table = example::read_metrics(run.file("metrics.csv"));
  const Settings& s = settings_;
  std::string text = "length " + std::to_string(s.length) + ", " + std::to_string(s.symbols) + " symbols, " +
                     std::to_string(s.layers) + " layers, " + std::to_string(s.heads) + " heads, dim " +
                     std::to_string(s.dim) + ", seed " + std::to_string(s.seed);
  if (!subtitle.empty()) text += "; " + subtitle;
  std::vector<double> drops;
  if (s.lr_drop_at < s.steps) drops.push_back(static_cast<double>(s.lr_drop_at));
  example::save_curve(run.file("curve.svg"),
                      {{s.attention, table.column("step"), table.column("loss"), table.column("accuracy")}},
                      {.title = "Copy task, " + s.attention + " attention", .subtitle = text, .rate_drops = drops});
}

}  // namespace copy_task
