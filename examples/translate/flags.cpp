#include "translate/flags.h"

#include "linnet/core/error.h"
#include "linnet/core/threads.h"
#include "support/program.h"

namespace translate {

void Flags::add_to(CLI::App& app) {
  using example::add_folder, example::add_integer;
  example::add_settings<Settings>(app, given);
  auto* out_option =
      add_folder(app, "--out", out, "folder for the run (default runs/translate-ATTENTION-seedSEED, then -2, ...)");
  auto* resume_option = add_folder(app, "--resume", resume, "go on with the run in this folder");
  auto* evaluate_option =
      add_folder(app, "--evaluate", evaluate, "BLEU of the model in this folder on its --test files");
  auto* from_option =
      add_folder(app, "--from", from, "translate with the model in this folder: what stands on standard input, or");
  auto* translate_option = app.add_option("--translate", translate, "the lines of this file, plain or .gz, or");
  auto* sentence_option =
      app.add_option("--show-attention", sentence, "this sentence, with a picture of where each subword looked");
  auto* svg_option = app.add_option("--svg", svg, "the file for that picture");
  auto* layer_option = add_integer(app, "--layer", layer, "of that attention, from 1 (default: the mean of all)");
  auto* head_option = add_integer(app, "--head", head, "the same");
  add_integer(app, "--beam", search.beams, "beams to search with, 1: greedy (default 5)");
  app.add_option("--length-penalty", search.length_penalty, "of beam search, 0 prefers short translations (default 1)");
  app.add_option("--temperature", search.temperature, "draw at random, the likelier the lower; 0: do not (default 0)");
  add_integer(app, "--top-k", search.top_k, "draw among so many, 0: any (default 0)");
  app.add_option("--top-p", search.top_p, "then among as few as have this probability together (default 1)");
  translate_option->needs(from_option)->excludes(sentence_option);
  sentence_option->needs(from_option)->needs(svg_option);
  for (auto* option : {svg_option, layer_option, head_option}) option->needs(sentence_option);
  for (auto* a : {resume_option, evaluate_option, from_option}) {
    for (auto* b : {resume_option, evaluate_option, from_option}) {
      if (a != b) a->excludes(b);
    }
  }
  out_option->excludes(evaluate_option)->excludes(from_option);
}

void Flags::settle(const CLI::App& app) {
  using example::check_between, example::check_number;
  check_between("--beam", search.beams, 1, 1000);
  check_number("--length-penalty", search.length_penalty, 0, 100, "0 to 100");
  check_number("--temperature", search.temperature, 0, 100, "0 to 100");
  check_between("--top-k", search.top_k, 0, INT64_MAX);
  check_number("--top-p", search.top_p, 1e-9, 1, "above 0 and at most 1");
  check_between("--layer", layer, 0, 1000);
  check_between("--head", head, 0, 1 << 16);
  const bool draws = search.temperature > 0;
  LINNET_CHECK(draws || (app.count("--top-k") == 0 && app.count("--top-p") == 0),
               "--top-k and --top-p want a --temperature above 0");
  LINNET_CHECK(!draws || app.count("--beam") == 0 || search.beams == 1, "--beam ", search.beams,
               ": with a --temperature it must be 1");
  if (draws) search.beams = 1;
}

Settings Flags::settings() const {
  Settings settings;
  settings.threads = linnet::num_threads();
  settings.device = linnet::name(linnet::default_device());
  return example::with_flags(settings, given);
}

}  // namespace translate
