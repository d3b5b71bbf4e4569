#include "language_model/use.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <set>

#include "language_model/evaluation.h"
#include "language_model/timing.h"
#include "language_model/writer.h"
#include "linnet/core/atomic_file.h"
#include "linnet/core/random.h"
#include "linnet/core/threads.h"
#include "support/best_model.h"
#include "support/curve.h"
#include "support/progress.h"

namespace language_model {

namespace {

constexpr int kRounds = 3;

Settings settings_in(const example::RunDirectory& run, const Flags& flags) {
  const auto before = example::settings_from_json<Settings>(run.settings(), run.file("settings.json"));
  return example::settings_of_run(before, flags.given, run.path(), {"text", "threads", "seed", "device"},
                                  "the settings come from the folder");
}

std::string milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

std::string size_text(const Settings& s) {
  return std::to_string(s.layers) + " layers, " + std::to_string(s.heads) + " heads, dim " + std::to_string(s.dim) +
         ", one sequence, " + std::to_string(s.threads) + (s.threads == 1 ? " thread" : " threads");
}

}  // namespace

Trained::Trained(const std::string& folder, const Flags& flags)
    : run_(example::RunDirectory::open(folder)),
      settings_(settings_in(run_, flags)),
      vocabulary_(Vocabulary::load(run_, settings_.subwords)) {
  example::use_device(settings_.device);
  linnet::set_num_threads(static_cast<int>(settings_.threads));
  linnet::manual_seed(static_cast<uint64_t>(settings_.seed));
  net_ = std::make_unique<linnet::models::CausalLM>(settings_.model(vocabulary_.size()));
  example::load_best(*net_, run_, "with the first look at held-out text");
}

int write(const Flags& flags) {
  using Clock = std::chrono::steady_clock;
  const Trained model(flags.from[0], flags);
  const Writer writer(model.net(), model.vocabulary(), model.settings().context);
  const Tokens prompt = writer.encode(flags.prompt);
  std::cout << flags.prompt << std::flush;
  Clock::time_point first;
  const Tokens made = writer(prompt, flags.tokens, flags.sampling, [&](const std::string& text) {
    if (first == Clock::time_point()) first = Clock::now();
    std::cout << text << std::flush;
    return std::cout.good();
  });
  std::cout << std::endl;
  if (made.size() > 1) {
    const double seconds = std::chrono::duration<double>(Clock::now() - first).count();
    std::cerr << milliseconds(seconds / static_cast<double>(made.size() - 1)) << " a token" << std::endl;
  }
  return 0;
}

int evaluate(const Flags& flags) {
  const Trained model(flags.evaluate, flags);
  const Settings& settings = model.settings();
  const Text text = read_text(settings.text);
  const Corpus corpus =
      example::naming(settings.text, [&] { return make_corpus(text, model.vocabulary(), settings.context); });
  std::cout << bits_text(bits_per_character(model.net(), corpus, settings.context)) << " on "
            << example::with_commas(text.held_out_characters) << " held-out characters" << std::endl;
  return 0;
}

int draw_timing(const Flags& flags) {
  example::PictureOptions picture{.title = "Time of a token by its position", .x_label = "position"};
  example::Panel panel{example::Panel::Scale::score, "time", "ms a token", {}};
  std::set<std::string> sizes;
  for (size_t i = 0; i < flags.from.size(); ++i) {
    const Trained model(flags.from[i], flags);
    const Times times = time_tokens(model.net(), model.vocabulary(), flags.positions, kRounds);
    std::vector<double> y;
    for (double seconds : times.seconds) y.push_back(1e3 * seconds);
    panel.lines.push_back({i, times.position, y});
    picture.names.push_back(model.settings().attention + " attention");
    sizes.insert(size_text(model.settings()));
    std::cout << flags.from[i] << ", " << picture.names[i] << ": " << milliseconds(times.seconds.front())
              << " a token at the start, " << milliseconds(times.seconds.back()) << " at position "
              << example::with_commas(flags.positions) << std::endl;
  }
  if (sizes.size() == 1) {
    picture.subtitle = *sizes.begin();
  } else {
    for (size_t i = 0; i < flags.from.size(); ++i) picture.names[i] += ", " + flags.from[i];
  }
  linnet::write_file(flags.timing, example::panels_svg({panel}, picture));
  std::cout << "The picture is " << flags.timing << std::endl;
  return 0;
}

}  // namespace language_model
