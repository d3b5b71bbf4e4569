#include "support/training.h"

#include <cmath>
#include <iostream>
#include <limits>
#include <utility>

#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/optim/clip.h"

namespace example {

namespace {
constexpr int64_t kLogEvery = 20;
constexpr int64_t kMost = int64_t{1} << 60;
}  // namespace

double amount(const linnet::StateDict& state, const std::string& name) {
  const double value = state.number(name);
  LINNET_CHECK(std::isfinite(value) && value >= 0, name, " is ", value, ", wanted: 0 or more");
  return value;
}

int64_t count(const linnet::StateDict& state, const std::string& name, int64_t least, int64_t most) {
  const uint64_t value = state.integer(name);
  LINNET_CHECK(value >= static_cast<uint64_t>(least) && value <= static_cast<uint64_t>(most), name, " is ", value,
               ", wanted: ", least, " to ", most);
  return static_cast<int64_t>(value);
}

uint64_t Training::step_of(const Checkpoint& checkpoint) {
  return naming(checkpoint.path, [&] { return checkpoint.state.integer("training.step"); });
}

Training::Training(linnet::nn::Module& net, std::unique_ptr<linnet::optim::Optimizer> optimizer,
                   const std::function<linnet::optim::Schedule(linnet::optim::Optimizer&)>& schedule,
                   const TrainingOptions& options)
    : net_(net), optimizer_(std::move(optimizer)), schedule_(schedule(*optimizer_)), options_(options) {}

bool Training::done() const {
  return step_ >= options_.steps || (options_.minutes > 0 && seconds_ >= 60 * options_.minutes);
}

void Training::train_step() {
  linnet::Tape tape;
  const Pass made = pass();
  const double loss = made.loss.item();
  LINNET_CHECK(std::isfinite(loss), "the loss of step ", step_ + 1, " is ", loss,
               ": the training has diverged; try a smaller --lr, or --clip 1");
  tape.backward(made.loss);
  const double most = options_.clip > 0 ? options_.clip : std::numeric_limits<double>::infinity();
  window_.norm += linnet::optim::clip_grad_norm(net_.parameters(), most);
  rate_ = optimizer_->lr();
  optimizer_->step();
  schedule_.step();
  moved();
  optimizer_->clear_grads();

  window_.loss += loss;
  window_.correct += made.correct;
  window_.counted += made.counted;
  ++window_.steps;
  tokens_ += made.tokens;
  ++step_;
}

bool Training::evaluate_if_due(const RunDirectory& run, const InterruptGuard& guard, Progress& line) {
  if (!evaluation_due()) return false;
  const auto start = std::chrono::steady_clock::now();
  line.finish();
  evaluate(run, guard);
  evaluating_ += std::chrono::steady_clock::now() - start;
  return true;
}

bool Training::train(const RunDirectory& run, const InterruptGuard& guard) {
  using Clock = std::chrono::steady_clock;
  // First of all a checkpoint: a folder without one counts as never begun.
  Checkpoints checkpoints(run.path());
  if (!checkpoints.exist()) save(checkpoints);
  const int64_t every = done() ? 1 : kLogEvery;  // a run that has ended keeps its last row
  MetricsWriter metrics(run.file("metrics.csv"),
                        {"step", "loss", "accuracy", "rate", "grad_norm", "tokens_per_second", "seconds"},
                        {std::move(earlier_metrics_), step_, every});
  Progress line;
  const double before = seconds_;
  const Clock::time_point start = Clock::now();
  evaluating_ = {};
  logged_at_ = seconds_;
  logged_step_ = step_;
  logged_tokens_ = tokens_;
  if (step_ > 0 && evaluate_if_due(run, guard, line)) save(checkpoints);
  bool stop = guard.interrupted();
  while (!done() && !stop) {
    train_step();
    seconds_ = before + std::chrono::duration<double>(Clock::now() - start - evaluating_).count();
    if (step_ % kLogEvery == 0 || done()) log(metrics);
    line.update(progress());
    stop = guard.interrupted() || line.lost();
    const bool is_news = !stop && evaluate_if_due(run, guard, line);
    stop = stop || guard.interrupted();
    if (stop || done() || is_news || checkpoints.due(step_)) {
      save(checkpoints);
      save_curve(run, "");
    }
  }
  return done() && !evaluation_due();
}

void Training::log(MetricsWriter& metrics) {
  const double n = static_cast<double>(window_.steps), elapsed = seconds_ - logged_at_;
  speed_ = elapsed > 0 ? static_cast<double>(step_ - logged_step_) / elapsed : 0;
  token_speed_ = elapsed > 0 ? static_cast<double>(tokens_ - logged_tokens_) / elapsed : 0;
  metrics.add(step_, {window_.loss / n, static_cast<double>(window_.correct) / static_cast<double>(window_.counted),
                      rate_, window_.norm / n, token_speed_, seconds_});
  shown_ = window_;
  logged_at_ = seconds_;
  logged_step_ = step_;
  logged_tokens_ = tokens_;
  if (step_ % kLogEvery == 0) window_ = {};  // the row of a last step between two others takes nothing away
}

ProgressState Training::progress() const {
  const Window& window = shown_.steps ? shown_ : window_;
  const double elapsed = seconds_ - logged_at_;
  const bool lately = speed_ > 0 || elapsed <= 0;
  const double speed = lately ? speed_ : static_cast<double>(step_ - logged_step_) / elapsed;
  const double token_speed = lately ? token_speed_ : static_cast<double>(tokens_ - logged_tokens_) / elapsed;
  double left = static_cast<double>(options_.steps - step_) / speed;
  if (options_.minutes > 0) left = std::min(left, std::max(0.0, 60 * options_.minutes - seconds_));
  return {.step = step_,
          .steps = options_.steps,
          .loss = window.loss / static_cast<double>(window.steps),
          .accuracy = static_cast<double>(window.correct) / static_cast<double>(window.counted),
          .rate = rate_,
          .tokens_per_second = token_speed,
          .seconds_left = left};
}

void Training::save(Checkpoints& checkpoints) {
  linnet::StateDict training;
  training.set_integer("step", static_cast<uint64_t>(step_));
  training.set_number("seconds", seconds_);
  training.set_integer("tokens", static_cast<uint64_t>(tokens_));
  training.set_number("loss", window_.loss);
  training.set_number("norm", window_.norm);
  training.set_integer("correct", static_cast<uint64_t>(window_.correct));
  training.set_integer("counted", static_cast<uint64_t>(window_.counted));
  training.set_integer("window_steps", static_cast<uint64_t>(window_.steps));
  const linnet::Generator& generator = linnet::default_generator();
  training.set_integer("generator_seed", generator.seed);
  training.set_integer("generator_stream", generator.stream);
  training.set_integer("generator_offset", generator.offset);
  save_more(training);
  std::vector<std::pair<std::string, linnet::StateDict>> parts{{"model", net_.state_dict()},
                                                               {"optimizer", optimizer_->state_dict()},
                                                               {"schedule", schedule_.state_dict()},
                                                               {"training", training}};
  if (position()) parts.push_back({"data", position()->state_dict()});
  checkpoints.save(parts);
}

void Training::restore(const Checkpoint& checkpoint, std::string metrics) {
  const linnet::StateDict& state = checkpoint.state;
  naming(checkpoint.path, [&] {
    net_.load_state_dict(state.part("model"));
    optimizer_->load_state_dict(state.part("optimizer"));
    schedule_.load_state_dict(state.part("schedule"));
    if (position()) position()->load_state_dict(state.part("data"));
    step_ = count(state, "training.step", 0, options_.steps);
    count(state, "schedule.step", step_, step_);
    seconds_ = amount(state, "training.seconds");
    tokens_ = count(state, "training.tokens", 0, kMost);
    window_.loss = amount(state, "training.loss");
    window_.norm = amount(state, "training.norm");
    window_.steps = count(state, "training.window_steps", step_ % kLogEvery, step_ % kLogEvery);
    window_.counted = count(state, "training.counted", 0, kMost);
    check(window_);
    window_.correct = count(state, "training.correct", 0, window_.counted);
    linnet::default_generator() = {state.integer("training.generator_seed"), state.integer("training.generator_stream"),
                                   state.integer("training.generator_offset")};
    restore_more(state.part("training"));
  });
  earlier_metrics_ = std::move(metrics);
}

bool Training::save_curve(const RunDirectory& run, const std::string& subtitle) {
  try {
    draw_curve(run, subtitle);
    return true;
  } catch (const linnet::Error& error) {
    if (!std::exchange(warned_, true)) std::cerr << "\nwarning: there is no picture: " << error.what() << std::endl;
    return false;
  }
}

}  // namespace example
