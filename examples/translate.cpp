// translate: a transformer learns to translate, by any attention, and translates what it is given.
// `translate --help` lists the flags; docs/translation.md says what to set and what came out.
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>

#include "linnet/core/random.h"
#include "linnet/core/safetensors.h"
#include "linnet/core/storage.h"
#include "linnet/core/threads.h"
#include "support/best_model.h"
#include "support/program.h"
#include "support/resume.h"
#include "translate/flags.h"
#include "translate/trainer.h"
#include "translate/use.h"

using namespace translate;
using example::RunDirectory;
using linnet::data::SubwordTokenizer;
using linnet::models::EncoderDecoder;

namespace {

std::string score_text(double bleu) {
  char text[32];
  std::snprintf(text, sizeof text, "BLEU %.2f", bleu);
  return text;
}

/// The files of one part, such as val.
Lines read_part(const Settings& settings, const std::string& part) {
  return read_pairs(settings.file(part, settings.source), settings.file(part, settings.target));
}

SubwordTokenizer learn_subwords(const Lines& lines, const Settings& settings) {
  std::vector<std::string> both = lines.source;
  both.insert(both.end(), lines.target.begin(), lines.target.end());
  return SubwordTokenizer::train(both, {.vocab = settings.vocab});
}

double bleu_of(const EncoderDecoder& net, const SubwordTokenizer& tokenizer, const Lines& lines,
               const SearchOptions& search, const std::function<bool()>& stop) {
  const std::vector<std::string> translations = Translator(net, tokenizer)(lines.source, search, stop);
  return stop() ? 0 : linnet::data::bleu(translations, lines.target).score;
}

/// make_run is called once everything else stands: what fails before that leaves no folder.
int train(const Settings& settings, const Flags& flags, const example::Earlier* earlier,
          const std::function<RunDirectory()>& make_run) {
  LINNET_CHECK(!settings.data.empty(), "--data: name the folder of the training pairs; docs/translation.md says where ",
               "some are");
  example::use_device(settings.device);
  linnet::set_num_threads(static_cast<int>(settings.threads));
  linnet::manual_seed(static_cast<uint64_t>(settings.seed));
  const Lines lines = read_part(settings, "train");
  const Lines test = read_part(settings, settings.test);
  Data data;
  data.val_lines = read_part(settings, "val");
  const SubwordTokenizer tokenizer =
      earlier ? SubwordTokenizer::load(earlier->from().file("tokenizer.model")) : learn_subwords(lines, settings);
  Left left, left_val;
  data.train = encode_pairs(lines, tokenizer, settings.max_length, left);
  data.val = encode_pairs(data.val_lines, tokenizer, settings.batch_tokens, left_val);
  LINNET_CHECK(!data.train.empty() && !data.val.empty(), settings.data,
               ": there are no pairs to train on: ", left.empty, " of train have an empty side and ", left.too_long,
               " more than --max-length ", settings.max_length, " subwords; of val ", data.val.size(), " can be used");
  EncoderDecoder net(settings.model(tokenizer.vocab()));
  Trainer trainer(net, tokenizer, data, settings);
  if (earlier) {
    const uint64_t step = Trainer::step_of(earlier->checkpoint());
    LINNET_CHECK(step <= static_cast<uint64_t>(trainer.steps()), "--epochs ", settings.epochs, ": the run in ",
                 earlier->from().path(), " is at step ", step, " already, and they have ", trainer.steps(),
                 "; give at least as many");
    trainer.restore(earlier->checkpoint(), earlier->metrics());
  }
  const RunDirectory run = make_run();
  if (!earlier || !earlier->in_place()) tokenizer.save(run.file("tokenizer.model"));
  if (earlier && !earlier->in_place()) example::copy_best(earlier->from(), run);
  std::cout << "Translation " << settings.source << " to " << settings.target << ", " << settings.attention
            << " attention: " << settings.layers << " + " << settings.layers << " layers, " << settings.heads
            << " heads, dim " << settings.dim << ", " << example::with_commas(tokenizer.vocab()) << " subwords, "
            << example::with_commas(net.parameter_count()) << " parameters, " << settings.threads
            << (settings.threads == 1 ? " thread" : " threads") << "; all files go to " << run.path() << std::endl
            << example::with_commas(static_cast<int64_t>(data.train.size())) << " pairs to train on (" << left.empty
            << " with an empty side and " << left.too_long << " too long left out), "
            << example::with_commas(static_cast<int64_t>(data.val.size())) << " to validate" << std::endl;
  if (earlier) std::cout << "Going on from step " << example::with_commas(trainer.step()) << std::endl;

  const example::InterruptGuard guard;
  linnet::reset_peak(linnet::default_device());
  if (!trainer.train(run, guard)) return example::say_how_to_go_on(run, trainer.step());
  const int64_t peak_bytes = linnet::memory_stats(linnet::default_device()).peak;

  net.load_state_dict(linnet::load_safetensors(run.file("model.safetensors")));
  const auto stop = [&] { return guard.interrupted(); };
  const double greedy = bleu_of(net, tokenizer, test, {}, stop);
  const double beam = bleu_of(net, tokenizer, test, flags.search, stop);
  if (stop()) return example::say_how_to_go_on(run, trainer.step());
  std::cout << "On " << settings.test << ", the model of epoch " << trainer.best_epoch() << ": " << score_text(beam)
            << " with " << flags.search.beams << " beams, " << score_text(greedy) << " greedy" << std::endl;
  run.save_json("summary.json", {{"attention", settings.attention},
                                 {"seed", settings.seed},
                                 {"steps", trainer.step()},
                                 {"epochs", trainer.epochs()},
                                 {"seconds", trainer.seconds()},
                                 {"best_epoch", trainer.best_epoch()},
                                 {"validation_bleu", trainer.best_bleu()},
                                 {"test_bleu", beam},
                                 {"test_bleu_greedy", greedy},
                                 {"beams", flags.search.beams},
                                 {"parameters", net.parameter_count()},
                                 {"tokens_per_second", trainer.tokens_per_second()},
                                 {"peak_bytes", peak_bytes},
                                 {"threads", settings.threads},
                                 {"device", settings.device}});
  if (trainer.save_curve(run, score_text(beam) + " on " + settings.test))
    std::cout << "The curve is " << run.file("curve.svg") << std::endl;
  return 0;
}

int resume(const Flags& flags) {
  example::Earlier earlier(flags.resume, flags.out);
  const RunDirectory& from = earlier.from();
  const auto before = example::settings_from_json<Settings>(from.settings(), from.file("settings.json"));
  const Settings settings = example::settings_of_run(
      before, flags.given, from.path(), {"data", "test", "epochs", "minutes", "threads", "device"},
      "--resume may change only --data, --test, --epochs, --minutes, --threads, --device and --out");
  example::use_device(settings.device);
  earlier.load();
  return train(settings, flags, &earlier, [&] { return earlier.make(example::settings_to_json(settings)); });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a transformer to translate, and translates.", "translate");
  Flags flags;
  flags.add_to(app);
  return example::run_program(app, argc, argv, [&] {
    flags.settle(app);
    if (app.count("--translate")) return translate_file(flags);
    if (app.count("--show-attention")) return show_attention(flags);
    if (app.count("--from")) return translate_input(flags);
    if (app.count("--evaluate")) return evaluate(flags);
    if (app.count("--resume")) return resume(flags);
    const Settings settings = flags.settings();
    if (!app.count("--out")) flags.out = RunDirectory::unused("translate", settings.attention, settings.seed);
    return train(settings, flags, nullptr,
                 [&] { return RunDirectory::create(flags.out, example::settings_to_json(settings)); });
  });
}
