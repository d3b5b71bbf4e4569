#include "translate/use.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "linnet/core/atomic_file.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "linnet/data/text.h"
#include "linnet/data/utf8.h"
#include "support/best_model.h"
#include "support/heat_map.h"
#include "support/program.h"
#include "support/progress.h"

namespace translate {

using linnet::data::kBegin, linnet::data::kEnd;
using linnet::data::SubwordTokenizer;

namespace {

constexpr size_t kMostBytes = 1 << 20;  // a line, as data::TextLimits has it

Settings settings_in(const example::RunDirectory& run, const Flags& flags) {
  const auto before = example::settings_from_json<Settings>(run.settings(), run.file("settings.json"));
  return example::settings_of_run(before, flags.given, run.path(), {"data", "test", "threads", "seed", "device"},
                                  "the settings come from the folder");
}

void say_what_was_cut(int64_t lines) {
  if (lines == 0) return;
  std::cerr << lines << (lines == 1 ? " line has" : " lines have") << " more than " << example::with_commas(kMostPieces)
            << " subwords; what is beyond was left out" << std::endl;
}

/// The mean over layers and heads, or of one of them, of row (1, time, heads, source time).
std::vector<double> shares_of(const std::vector<linnet::Tensor>& layers, const Flags& flags) {
  const int64_t time = layers[0].size(1), heads = layers[0].size(2), width = layers[0].size(3);
  const int64_t depth = static_cast<int64_t>(layers.size());
  LINNET_CHECK(flags.layer <= depth, "--layer ", flags.layer, ": the model has ", depth);
  LINNET_CHECK(flags.head <= heads, "--head ", flags.head, ": the model has ", heads);
  std::vector<double> shares(static_cast<size_t>(time * width));
  const double parts = static_cast<double>((flags.layer ? 1 : depth) * (flags.head ? 1 : heads));
  for (int64_t layer = 0; layer < depth; ++layer) {
    if (flags.layer && layer != flags.layer - 1) continue;
    const std::vector<float> w = layers[static_cast<size_t>(layer)].to_vector<float>();
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t h = 0; h < heads; ++h) {
        if (flags.head && h != flags.head - 1) continue;
        const float* row = w.data() + (t * heads + h) * width;
        for (int64_t j = 0; j < width; ++j) shares[static_cast<size_t>(t * width + j)] += row[j] / parts;
      }
    }
  }
  return shares;
}

std::vector<std::string> pieces_of(const SubwordTokenizer& tokenizer, const Tokens& tokens) {
  std::vector<std::string> pieces;
  for (int32_t token : tokens) pieces.push_back(tokenizer.piece(token));
  return pieces;
}

}  // namespace

Trained::Trained(const std::string& folder, const Flags& flags)
    : run_(example::RunDirectory::open(folder)),
      settings_(settings_in(run_, flags)),
      tokenizer_(SubwordTokenizer::load(run_.file("tokenizer.model"))) {
  example::use_device(settings_.device);
  linnet::set_num_threads(static_cast<int>(settings_.threads));
  linnet::manual_seed(static_cast<uint64_t>(settings_.seed));
  net_ = std::make_unique<linnet::models::EncoderDecoder>(settings_.model(tokenizer_.vocab()));
  example::load_best(*net_, run_, "after an epoch");
}

int evaluate(const Flags& flags) {
  const Trained model(flags.evaluate, flags);
  const Settings& settings = model.settings();
  const Lines test =
      read_pairs(settings.file(settings.test, settings.source), settings.file(settings.test, settings.target));
  const auto translations = Translator(model.net(), model.tokenizer())(test.source, flags.search);
  const linnet::data::Bleu bleu = linnet::data::bleu(translations, test.target);
  char text[160];
  std::snprintf(text, sizeof text, "BLEU %.2f (%.1f/%.1f/%.1f/%.1f, brevity penalty %.3f)", bleu.score,
                bleu.precisions[0], bleu.precisions[1], bleu.precisions[2], bleu.precisions[3], bleu.brevity_penalty);
  std::cout << text << " on " << example::with_commas(static_cast<int64_t>(test.source.size())) << " lines of "
            << settings.test << ", " << flags.search.beams << (flags.search.beams == 1 ? " beam" : " beams")
            << std::endl;
  return 0;
}

int translate_file(const Flags& flags) {
  const std::vector<std::string> lines = linnet::data::read_lines(flags.translate);
  const Trained model(flags.from, flags);
  int64_t cut = 0;
  for (const std::string& line : Translator(model.net(), model.tokenizer())(lines, flags.search, {}, &cut))
    std::cout << line << "\n";
  say_what_was_cut(cut);
  return 0;
}

int translate_input(const Flags& flags) {
  const Trained model(flags.from, flags);
  const Translator translator(model.net(), model.tokenizer());
  const bool terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  if (terminal) std::cout << "A sentence a line; Ctrl-D ends.\n";
  int64_t number = 0, cut = 0;
  bool all_well = true;
  std::string line;
  while (std::cout && (!terminal || std::cout << "> " << std::flush) && std::getline(std::cin, line)) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const int64_t fault = line.size() > kMostBytes ? -1 : linnet::data::invalid_utf8_at(line);
    if (line.size() > kMostBytes || fault >= 0) {
      std::cerr << "line " << number << ": "
                << (fault >= 0 ? "is not UTF-8 at byte " + std::to_string(fault + 1) : "is longer than a megabyte")
                << std::endl;
      all_well = false;
      line.clear();
    }
    std::cout << translator({line}, flags.search, {}, &cut)[0] << std::endl;
  }
  if (terminal) std::cout << std::endl;
  say_what_was_cut(cut);
  return all_well ? 0 : example::kFailed;
}

int show_attention(const Flags& flags) {
  const Trained model(flags.from, flags);
  const Translator translator(model.net(), model.tokenizer());
  const Tokens source = translator.encode(flags.sentence);
  LINNET_CHECK(!source.empty(), "--show-attention: the sentence has no words");
  Tokens target = translator.decode({source}, flags.search)[0];
  const std::string translation = model.tokenizer().decode(target);
  Tokens given{kBegin};
  given.insert(given.end(), target.begin(), target.end());
  target.push_back(kEnd);
  const auto row = [](const Tokens& tokens) {
    return linnet::Tensor::from(tokens, {1, static_cast<int64_t>(tokens.size())});
  };
  const auto text = [](const char* what, int64_t number) {
    return number ? std::string(what) + " " + std::to_string(number) : "all " + std::string(what) + "s";
  };
  const example::HeatMap map{
      .title = "Attention of the translation to the source, " + model.settings().attention,
      .subtitle = text("layer", flags.layer) + ", " + text("head", flags.head) + "; each row sums to 1",
      .rows = pieces_of(model.tokenizer(), target),
      .columns = pieces_of(model.tokenizer(), source),
      .shares = shares_of(model.net().cross_weights(row(source), nullptr, row(given)), flags)};
  linnet::write_file(flags.svg, example::heat_map_svg(map));
  std::cout << translation << "\n" << flags.svg << " shows where it looked" << std::endl;
  return 0;
}

}  // namespace translate
