// plot_runs: the curves of several runs in one picture. plot_runs runs/a runs/b --svg both.svg
#include <iostream>

#include "linnet/core/error.h"
#include "support/curve.h"
#include "support/metrics.h"
#include "support/program.h"
#include "support/run_directory.h"

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
      std::string name = folders[i];
      if (settings.contains("attention") && settings.contains("seed")) {
        name = settings["attention"].get<std::string>() + ", seed " + settings["seed"].dump();
      }
      runs.push_back(
          {names.empty() ? name : names[i], table.column("step"), table.column("loss"), table.column("accuracy")});
      if (settings.contains("lr_drop_at")) options.rate_drops = {settings["lr_drop_at"].get<double>()};
    }
    example::save_curve(svg, runs, options);
    std::cout << svg << " shows " << runs.size() << (runs.size() == 1 ? " run" : " runs") << std::endl;
    return 0;
  });
}
