// language_model: a transformer learns to write, character by character or by pieces of words, with linear or softmax
// attention, and writes. `language_model --help` lists the flags; docs/language_model.md says what came out.
#include <functional>
#include <iostream>
#include <string>

#include "language_model/evaluation.h"
#include "language_model/flags.h"
#include "language_model/trainer.h"
#include "language_model/use.h"
#include "linnet/core/compute.h"
#include "linnet/core/random.h"
#include "linnet/core/storage.h"
#include "linnet/core/threads.h"
#include "support/best_model.h"
#include "support/program.h"
#include "support/resume.h"

using namespace language_model;
using example::RunDirectory;
using linnet::models::CausalLM;

namespace {

/// make_run is called once everything else stands: what fails before that leaves no folder.
int train(const Settings& settings, const example::Earlier* earlier, const std::function<RunDirectory()>& make_run) {
  LINNET_CHECK(!settings.text.empty(), "--text: name the file to learn from");
  example::use_device(settings.device);
  linnet::set_num_threads(static_cast<int>(settings.threads));
  linnet::manual_seed(static_cast<uint64_t>(settings.seed));
  const Text text = read_text(settings.text);
  const Vocabulary vocabulary =
      earlier ? Vocabulary::load(earlier->from(), settings.subwords) : Vocabulary::of(text.train, settings.subwords);
  const Corpus corpus = example::naming(settings.text, [&] { return make_corpus(text, vocabulary, settings.context); });
  CausalLM net(settings.model(vocabulary.size()));
  linnet::Tensor embeddings = net.embed.weight.value();
  linnet::compute::scale_inplace(embeddings, 25);  // N(0, 0.5^2): no smaller than the positions they are added to
  Trainer trainer(net, corpus, settings);
  if (earlier) trainer.restore(earlier->checkpoint(), earlier->metrics());
  const RunDirectory run = make_run();
  if (!earlier || !earlier->in_place()) vocabulary.save(run);
  if (earlier && !earlier->in_place()) example::copy_best(earlier->from(), run);
  std::cout << "Language model, " << settings.attention << " attention: " << settings.layers << " layers, "
            << settings.heads << " heads, dim " << settings.dim << ", a vocabulary of "
            << example::with_commas(vocabulary.size()) << (settings.subwords ? " subwords, " : " characters, ")
            << example::with_commas(net.parameter_count()) << " parameters, " << settings.threads
            << (settings.threads == 1 ? " thread" : " threads") << "; all files go to " << run.path() << std::endl
            << example::with_commas(text.train_characters) << " characters to learn from, "
            << example::with_commas(text.held_out_characters) << " held out (" << corpus.unknown
            << " tokens of them are not in the vocabulary)" << std::endl;
  if (earlier) std::cout << "Going on from step " << example::with_commas(trainer.step()) << std::endl;

  const example::InterruptGuard guard;
  linnet::reset_peak(linnet::default_device());
  if (!trainer.train(run, guard)) return example::say_how_to_go_on(run, trainer.step());
  const int64_t peak_bytes = linnet::memory_stats(linnet::default_device()).peak;

  example::load_best(net, run, "with the first look at held-out text");
  const double bits = bits_per_character(net, corpus, settings.context, 0, [&] { return guard.interrupted(); });
  if (guard.interrupted()) return example::say_how_to_go_on(run, trainer.step());
  std::cout << "On all of the held-out text, the model of step " << example::with_commas(trainer.best_step()) << ": "
            << bits_text(bits) << std::endl;
  run.save_json("summary.json", {{"attention", settings.attention},
                                 {"seed", settings.seed},
                                 {"steps", trainer.step()},
                                 {"seconds", trainer.seconds()},
                                 {"best_step", trainer.best_step()},
                                 {"bits_per_character", bits},
                                 {"held_out_characters", text.held_out_characters},
                                 {"parameters", net.parameter_count()},
                                 {"tokens_per_second", trainer.tokens_per_second()},
                                 {"peak_bytes", peak_bytes},
                                 {"threads", settings.threads},
                                 {"device", settings.device}});
  if (trainer.save_curve(run, bits_text(bits) + " on held-out text"))
    std::cout << "The curve is " << run.file("curve.svg") << std::endl;
  return 0;
}

int resume(const Flags& flags) {
  example::Earlier earlier(flags.resume, flags.out);
  const RunDirectory& from = earlier.from();
  const auto before = example::settings_from_json<Settings>(from.settings(), from.file("settings.json"));
  const Settings settings = example::settings_of_run(
      before, flags.given, from.path(), {"text", "steps", "minutes", "evaluate_every", "threads", "device"},
      "--resume may change only --text, --steps, --minutes, --evaluate-every, --threads, --device and --out");
  example::use_device(settings.device);
  earlier.load();
  earlier.check_steps(settings.steps);
  return train(settings, &earlier, [&] { return earlier.make(example::settings_to_json(settings)); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a transformer to write like a text, and writes.", "language_model");
  Flags flags;
  flags.add_to(app);
  return example::run_program(app, argc, argv, [&] {
    flags.check(app);
    if (app.count("--timing")) return draw_timing(flags);
    if (app.count("--from")) return write(flags);
    if (app.count("--evaluate")) return evaluate(flags);
    if (app.count("--resume")) return resume(flags);
    const Settings settings = flags.settings();
    if (!app.count("--out")) flags.out = RunDirectory::unused("language_model", settings.attention, settings.seed);
    return train(settings, nullptr,
                 [&] { return RunDirectory::create(flags.out, example::settings_to_json(settings)); });
  });
}
