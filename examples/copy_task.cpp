// copy_task: a transformer learns to copy. Sequences are `0 w 0 w`; the loss is over the second w. Katharopoulos et al.
// 2020, section 4.1.1. With --task masked some symbols of both w are hidden, and the loss is over these; it is after
// Vyas et al. 2020, "Fast Transformers with Clustered Attention". `copy_task --help` lists the flags; docs/training.md
// says what to set and why.
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "copy_task/evaluation.h"
#include "copy_task/trainer.h"
#include "linnet/core/random.h"
#include "linnet/core/safetensors.h"
#include "linnet/core/storage.h"
#include "linnet/core/threads.h"
#include "support/program.h"
#include "support/resume.h"

using namespace copy_task;
using example::RunDirectory;

namespace {

/// Rounded down, so that only a perfect score reads 100 %.
std::string percent(double accuracy) {
  char text[32];
  std::snprintf(text, sizeof text, accuracy < 0.99 ? "%.2f %%" : "%.3f %%", std::floor(1e5 * accuracy) / 1e3);
  return text;
}

void demonstrate(const Learner& learner) {
  if (!learner.writer()) return show_found(learner);
  show_copies(*learner.writer(), demonstration_strings(learner.size(), learner.seed(), 3));
}

void print_score(const Score& score) {
  std::cout << "Accuracy " << percent(score.accuracy) << ", loss " << score.loss << " on "
            << example::with_commas(score.sequences) << " fresh sequences" << std::endl;
}

/// make_run is called once everything else stands: what fails before that leaves no folder.
int train(const Settings& settings, const example::Earlier* earlier, const std::function<RunDirectory()>& make_run) {
  example::use_device(settings.device);
  linnet::set_num_threads(static_cast<int>(settings.threads));
  linnet::manual_seed(static_cast<uint64_t>(settings.seed));
  Learner learner(settings);
  linnet::nn::Module& net = learner.net();
  Trainer trainer(learner, settings);
  if (earlier) trainer.restore(earlier->checkpoint(), earlier->metrics());
  const RunDirectory run = make_run();
  std::cout << settings.title() << ": " << settings.layers << " layers, " << settings.heads << " heads, dim "
            << settings.dim << ", " << example::with_commas(net.parameter_count()) << " parameters, "
            << settings.threads << (settings.threads == 1 ? " thread" : " threads") << "; all files go to "
            << run.path() << std::endl;
  if (earlier) std::cout << "Going on from step " << example::with_commas(trainer.step()) << std::endl;

  const example::InterruptGuard guard;
  linnet::reset_peak(linnet::default_device());
  if (!trainer.train(run, guard)) return example::say_how_to_go_on(run, trainer.step());
  const int64_t peak_bytes = linnet::memory_stats(linnet::default_device()).peak;
  linnet::save_safetensors(run.file("model.safetensors"), net.state_dict());

  const Score score = evaluate(learner, [&] { return guard.interrupted(); });
  if (guard.interrupted()) return example::say_how_to_go_on(run, trainer.step());
  print_score(score);
  const bool drawn = trainer.save_curve(run, percent(score.accuracy) + " on fresh sequences");
  run.save_json("summary.json", {{"attention", settings.attention},
                                 {"seed", settings.seed},
                                 {"steps", trainer.step()},
                                 {"seconds", trainer.seconds()},
                                 {"loss", score.loss},
                                 {"accuracy", score.accuracy},
                                 {"tokens_per_second", trainer.tokens_per_second()},
                                 {"peak_bytes", peak_bytes},
                                 {"threads", settings.threads},
                                 {"device", settings.device}});
  demonstrate(learner);
  if (drawn) std::cout << "The curve is " << run.file("curve.svg") << std::endl;
  return 0;
}

int resume(const Flags& flags) {
  example::Earlier earlier(flags.resume, flags.out);
  const RunDirectory& from = earlier.from();
  const auto before = example::settings_from_json<Settings>(from.settings(), from.file("settings.json"));
  const Settings settings = flags.settings_of(before, from.path(), true);
  example::use_device(settings.device);
  earlier.load();
  earlier.check_steps(settings.steps);
  if (Trainer::step_of(earlier.checkpoint()) == static_cast<uint64_t>(settings.steps)) {
    std::cout << from.path() << " has done its " << example::with_commas(settings.steps)
              << " steps; a larger --steps trains on from there" << std::endl;
  }
  return train(settings, &earlier, [&] { return earlier.make(example::settings_to_json(settings)); });
}

int evaluate_or_copy(const Flags& flags) {
  const RunDirectory run = RunDirectory::open(flags.evaluate.empty() ? flags.from : flags.evaluate);
  const auto before = example::settings_from_json<Settings>(run.settings(), run.file("settings.json"));
  const Settings settings = flags.settings_of(before, run.path(), false);
  example::use_device(settings.device);
  const TaskSize size{settings.length, settings.symbols};
  std::vector<std::vector<int32_t>> strings;
  if (flags.evaluate.empty()) {
    LINNET_CHECK(!settings.is_masked(), "--copy: the model in ", run.path(), " finds hidden symbols, it cannot write");
    strings.push_back(parse_string(flags.copy, size));
  }

  linnet::set_num_threads(static_cast<int>(settings.threads));
  Learner learner(settings);
  const example::Checkpoint checkpoint = example::Checkpoints(run.path()).load();
  example::naming(checkpoint.path, [&] { learner.net().load_state_dict(checkpoint.state.part("model")); });
  if (strings.empty()) {
    print_score(evaluate(learner));
    demonstrate(learner);
    return 0;
  }
  if (static_cast<int64_t>(strings[0].size()) < size.shortest()) {
    std::cout << "(the model was trained on strings of " << size.shortest() << " to " << size.longest()
              << " symbols; a shorter one may well fail)\n";
  }
  show_copies(*learner.writer(), strings);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a transformer to copy: 0 w 0 w.", "copy_task");
  Flags flags;
  flags.add_to(app);
  return example::run_program(app, argc, argv, [&] {
    if (app.count("--evaluate") || app.count("--copy")) return evaluate_or_copy(flags);
    if (app.count("--resume")) return resume(flags);
    const Settings settings = flags.settings();
    if (!app.count("--out"))
      flags.out = RunDirectory::unused(settings.is_masked() ? "masked_copy_task" : "copy_task", settings.attention,
                                       settings.seed);
    return train(settings, nullptr,
                 [&] { return RunDirectory::create(flags.out, example::settings_to_json(settings)); });
  });
}
