#include "support/curve.h"

#include <algorithm>
#include <cmath>

#include "linnet/core/atomic_file.h"
#include "support/chart.h"

namespace example {
namespace {

using chart::Axis;

Axis loss_axis(const std::vector<CurveRun>& runs) {
  double low = INFINITY, high = 0;
  for (const CurveRun& run : runs) {
    for (double loss : run.loss) {
      if (std::isfinite(loss) && loss > 0) low = std::min(low, loss), high = std::max(high, loss);
    }
  }
  if (high == 0) return chart::linear_axis(0, 1, 5);
  if (high < 10 * low) {
    const double gap = chart::nice_gap(high, 5);
    return chart::linear_axis(0, std::ceil(high / gap) * gap, 5);
  }
  return chart::decades(std::max(low, high * 1e-8), high);
}

std::string percent(double share) { return chart::tick_label(100 * share) + " %"; }

}  // namespace

std::string curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options) {
  double last_step = 0;
  std::vector<std::string> names;
  for (const CurveRun& run : runs) {
    for (double step : run.steps) {
      if (std::isfinite(step)) last_step = std::max(last_step, step);
    }
    names.push_back(run.name);
  }
  Axis x = chart::linear_axis(0, last_step, 8), loss = loss_axis(runs), accuracy = chart::linear_axis(0, 1, 5);
  const bool legend = runs.size() > 1;
  const double top = (options.subtitle.empty() ? 76 : 94) + (legend ? 22 : 0);
  x.begin = chart::kLeft, x.end = chart::kWidth - chart::kRight;
  loss.begin = top + chart::kPanel, loss.end = top;
  accuracy.begin = top + 2 * chart::kPanel + chart::kGap, accuracy.end = top + chart::kPanel + chart::kGap;

  std::string out = chart::head(accuracy.begin + 50, options.title, options.subtitle);
  if (legend) out += chart::legend(names, top - 36);
  out += chart::frame(x, loss, loss.logarithmic ? "loss (nats a symbol, log scale)" : "loss (nats a symbol)",
                      options.rate_drops);
  for (size_t i = 0; i < runs.size(); ++i) out += chart::polyline(runs[i].steps, runs[i].loss, x, loss, i);
  out += chart::frame(x, accuracy, "accuracy", options.rate_drops, percent);
  for (size_t i = 0; i < runs.size(); ++i) out += chart::polyline(runs[i].steps, runs[i].accuracy, x, accuracy, i);
  out += chart::label("tick", (x.begin + x.end) / 2, accuracy.begin + 39,
                      options.rate_drops.empty() ? "training step" : "training step (dashed: the learning rate drops)",
                      "middle");
  return out + "</svg>\n";
}

void save_curve(const std::string& path, const std::vector<CurveRun>& runs, const CurveOptions& options) {
  linnet::write_file(path, curve_svg(runs, options));
}

}  // namespace example
