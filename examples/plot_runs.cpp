// plot_runs: the curves of several runs in one picture. plot_runs runs/a runs/b --svg both.svg
#include <algorithm>
#include <iostream>

#include "linnet/core/error.h"
#include "support/curve.h"
#include "support/metrics.h"
#include "support/program.h"
#include "support/run_directory.h"

namespace {

/// What the legend calls a run: its attention and seed, where the settings have them.
std::string name_of(const std::string& folder, const example::Json& settings) {
  if (!settings.contains("attention") || !settings.contains("seed")) return folder;
  const example::Json& attention = settings["attention"];
  return (attention.is_string() ? attention.get<std::string>() : attention.dump()) + ", seed " +
         settings["seed"].dump();
}

/// The step at which the rate of the run drops, where the settings have one, once.
void add_drop(const example::Json& settings, std::vector<double>& drops) {
  if (!settings.contains("lr_drop_at") || !settings["lr_drop_at"].is_number()) return;
  const double drop = settings["lr_drop_at"].get<double>();
  if (std::find(drops.begin(), drops.end(), drop) == drops.end()) drops.push_back(drop);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Draws the curves of several runs into one SVG.", "plot_runs");
  std::vector<std::string> folders, names;
  std::string svg, title = "Copy task";
  app.add_option("runs", folders, "folders that --out of a training program named")->required();
  app.add_option("--names", names, "what the legend calls them (default: their attention and seed)");
  app.add_option("--svg", svg, "the file to write")->required();
  app.add_option("--title", title, "above the picture");
  return example::run_program(app, argc, argv, [&] {
    LINNET_CHECK(names.empty() || names.size() == folders.size(), "--names: ", names.size(), " names for ",
                 folders.size(), " runs");
    std::vector<example::CurveRun> runs;
    example::CurveOptions options{.title = title};
    for (size_t i = 0; i < folders.size(); ++i) {
      const auto run = example::RunDirectory::open(folders[i]);
      const auto table = example::read_metrics(run.file("metrics.csv"));
      const example::Json settings = run.settings();
      runs.push_back({names.empty() ? name_of(folders[i], settings) : names[i], table.column("step"),
                      table.column("loss"), table.column("accuracy")});
      add_drop(settings, options.rate_drops);
    }
    example::save_curve(svg, runs, options);
    std::cout << svg << " shows " << runs.size() << (runs.size() == 1 ? " run" : " runs") << std::endl;
    return 0;
  });
}
