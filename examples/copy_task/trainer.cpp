#include "copy_task/trainer.h"

#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <utility>

#include "copy_task/evaluation.h"
#include "linnet/autograd/tape.h"
#include "linnet/ops/cross_entropy.h"
#include "linnet/optim/clip.h"
#include "support/curve.h"

namespace copy_task {

using linnet::Tensor;

namespace {
constexpr int64_t kLogEvery = 20;

/// A sum or a time.
double amount(const linnet::StateDict& state, const char* name) {
  const double value = state.number(name);
  LINNET_CHECK(std::isfinite(value) && value >= 0, name, " is ", value, ", wanted: 0 or more");
  return value;
}

int64_t count(const linnet::StateDict& state, const char* name, int64_t least, int64_t most) {
  const uint64_t value = state.integer(name);
  LINNET_CHECK(value >= static_cast<uint64_t>(least) && value <= static_cast<uint64_t>(most), name, " is ", value,
               ", wanted: ", least, " to ", most);
  return static_cast<int64_t>(value);
}

}  // namespace

uint64_t step_of(const example::Checkpoint& checkpoint) {
  return example::naming(checkpoint.path, [&] { return checkpoint.state.integer("training.step"); });
}

Trainer::Trainer(linnet::models::CausalLM& net, const Settings& settings)
    : net_(net),
      settings_(settings),
      size_{settings.length, settings.symbols},
      device_(settings.device == "cuda" ? linnet::Device::cuda : linnet::Device::cpu),
      optimizer_(net.parameters(), {.lr = settings.lr, .weight_decay = settings.weight_decay}),
      schedule_(optimizer_, {.at = {settings.lr_drop_at}}) {}

void Trainer::train_step() {
  const Batch batch = make_batch(size_, settings_.batch, static_cast<uint64_t>(settings_.seed), Stream::training,
                                 static_cast<uint64_t>(step_));
  const Tensor targets = batch.targets.to(device_);

  linnet::Tape tape;
  const linnet::Variable logits = net_(batch.inputs.to(device_));
  const linnet::Variable loss = linnet::cross_entropy(logits, targets, {.ignore_index = kIgnored});
  LINNET_CHECK(std::isfinite(loss.item()), "the loss of step ", step_ + 1, " is ", loss.item(),
               ": the training has diverged; try a smaller --lr, or --clip 1");
  tape.backward(loss);
  const double most = settings_.clip > 0 ? settings_.clip : std::numeric_limits<double>::infinity();
  window_.norm += linnet::optim::clip_grad_norm(net_.parameters(), most);
  rate_ = optimizer_.lr();
  optimizer_.step();
  schedule_.step();
  optimizer_.clear_grads();

  window_.loss += loss.item();
  window_.correct += count_correct(logits.value(), targets);
  window_.counted += batch.counted;
  ++window_.steps;
  ++step_;
}

bool Trainer::train(const example::RunDirectory& run, const example::InterruptGuard& guard) {
  using Clock = std::chrono::steady_clock;
  // First of all a checkpoint: a folder without one counts as never begun.
  example::Checkpoints checkpoints(run.path());
  if (!checkpoints.exist()) save(checkpoints);
  const int64_t every = step_ == settings_.steps ? 1 : kLogEvery;  // a run that has ended keeps its last row
  example::MetricsWriter metrics(run.file("metrics.csv"),
                                 {"step", "loss", "accuracy", "rate", "grad_norm", "tokens_per_second", "seconds"},
                                 {std::move(earlier_metrics_), step_, every});
  example::Progress line;
  const double before = seconds_;
  const Clock::time_point start = Clock::now();
  logged_at_ = seconds_;
  logged_step_ = step_;
  bool stop = false;
  while (step_ < settings_.steps && !stop) {
    train_step();
    seconds_ = before + std::chrono::duration<double>(Clock::now() - start).count();
    if (step_ % kLogEvery == 0 || step_ == settings_.steps) log(metrics);
    line.update(progress());
    stop = guard.interrupted() || line.lost();
    if (stop || step_ == settings_.steps || checkpoints.due(step_)) {
      save(checkpoints);
      save_curve(run, "");
    }
  }
  return step_ == settings_.steps;
}

void Trainer::log(example::MetricsWriter& metrics) {
  const double n = static_cast<double>(window_.steps), elapsed = seconds_ - logged_at_;
  speed_ = elapsed > 0 ? static_cast<double>(step_ - logged_step_) / elapsed : 0;
  const double tokens = static_cast<double>(settings_.batch * (settings_.length - 1));
  metrics.add(step_, {window_.loss / n, static_cast<double>(window_.correct) / static_cast<double>(window_.counted),
                      rate_, window_.norm / n, speed_ * tokens, seconds_});
  shown_ = window_;
  logged_at_ = seconds_;
  logged_step_ = step_;
  if (step_ % kLogEvery == 0) window_ = {};  // the row of a last step between two others takes nothing away
}

example::ProgressState Trainer::progress() const {
  const Window& window = shown_.steps ? shown_ : window_;
  const double elapsed = seconds_ - logged_at_;
  const double speed = speed_ > 0 || elapsed <= 0 ? speed_ : static_cast<double>(step_ - logged_step_) / elapsed;
  return {.step = step_,
          .steps = settings_.steps,
          .loss = window.loss / static_cast<double>(window.steps),
          .accuracy = static_cast<double>(window.correct) / static_cast<double>(window.counted),
          .rate = rate_,
          .tokens_per_second = speed * static_cast<double>(settings_.batch * (settings_.length - 1)),
          .seconds_left = static_cast<double>(settings_.steps - step_) / speed};
}

void Trainer::save(example::Checkpoints& checkpoints) {
  linnet::StateDict training;
  training.set_integer("step", static_cast<uint64_t>(step_));
  training.set_number("seconds", seconds_);
  training.set_number("loss", window_.loss);
  training.set_number("norm", window_.norm);
  training.set_integer("correct", static_cast<uint64_t>(window_.correct));
  training.set_integer("counted", static_cast<uint64_t>(window_.counted));
  training.set_integer("window_steps", static_cast<uint64_t>(window_.steps));
  const linnet::Generator& generator = linnet::default_generator();
  training.set_integer("generator_seed", generator.seed);
  training.set_integer("generator_stream", generator.stream);
  training.set_integer("generator_offset", generator.offset);
  checkpoints.save({{"model", net_.state_dict()},
                    {"optimizer", optimizer_.state_dict()},
                    {"schedule", schedule_.state_dict()},
                    {"training", training}});
}

void Trainer::restore(const example::Checkpoint& checkpoint, std::string metrics) {
  const linnet::StateDict& state = checkpoint.state;
  example::naming(checkpoint.path, [&] {
    net_.load_state_dict(state.part("model"));
    optimizer_.load_state_dict(state.part("optimizer"));
    schedule_.load_state_dict(state.part("schedule"));
    step_ = count(state, "training.step", 0, settings_.steps);
    count(state, "schedule.step", step_, step_);
    seconds_ = amount(state, "training.seconds");
    window_.loss = amount(state, "training.loss");
    window_.norm = amount(state, "training.norm");
    window_.steps = count(state, "training.window_steps", step_ % kLogEvery, step_ % kLogEvery);
    const int64_t strings = window_.steps * settings_.batch;
    window_.counted = count(state, "training.counted", strings * size_.shortest(), strings * size_.longest());
    window_.correct = count(state, "training.correct", 0, window_.counted);
    linnet::default_generator() = {state.integer("training.generator_seed"), state.integer("training.generator_stream"),
                                   state.integer("training.generator_offset")};
  });
  earlier_metrics_ = std::move(metrics);
}

double Trainer::tokens_per_second() const {
  return seconds_ > 0
             ? static_cast<double>(step_) * static_cast<double>(settings_.batch * (settings_.length - 1)) / seconds_
             : 0;
}

bool Trainer::save_curve(const example::RunDirectory& run, const std::string& subtitle) {
  try {
    draw_curve(run, subtitle);
    return true;
  } catch (const linnet::Error& error) {
    if (!std::exchange(warned_, true)) std::cerr << "\nwarning: there is no picture: " << error.what() << std::endl;
    return false;
  }
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
