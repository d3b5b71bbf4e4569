#include "copy_task/trainer.h"

#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/radam.h"
#include "support/curve.h"
#include "support/predictions.h"

namespace copy_task {

using linnet::optim::Optimizer;

Trainer::Trainer(Learner& learner, const Settings& settings)
    : Training(learner.net(),
               std::make_unique<linnet::optim::RAdam>(
                   learner.net().parameters(),
                   linnet::optim::RAdamOptions{.lr = settings.lr, .weight_decay = settings.weight_decay}),
               [&](Optimizer& optimizer) { return linnet::optim::StepDrop(optimizer, {.at = {settings.lr_drop_at}}); },
               {.steps = settings.steps, .clip = settings.clip}),
      learner_(learner),
      settings_(settings) {}

example::Pass Trainer::pass() {
  const Batch batch = learner_.batch(settings_.batch, Stream::training, static_cast<uint64_t>(step()));
  const linnet::Variable logits = learner_.logits(batch);
  return {linnet::cross_entropy(logits, batch.targets, {.ignore_index = example::kIgnored}),
          example::count_correct(logits.value(), batch.targets), batch.counted, batch.inputs.numel()};
}

void Trainer::check(const Window& window) const {
  const int64_t strings = window.steps * settings_.batch;
  const TaskSize& size = learner_.size();
  const auto counted = [&](int64_t n) { return strings * (settings_.is_masked() ? 2 * size.hidden(n) : n); };
  const int64_t least = counted(size.shortest()), most = counted(size.longest());
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
                      {.title = s.title(), .subtitle = text, .rate_drops = drops});
}

}  // namespace copy_task
