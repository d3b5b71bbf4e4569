#include "support/curve.h"

#include <algorithm>
#include <cmath>

#include "linnet/core/atomic_file.h"
#include "support/chart.h"

namespace example {
namespace {

using chart::Axis;

double largest(const Panel& panel) {
  double high = 0;
  for (const Line& line : panel.lines) {
    for (double y : line.y) high = std::isfinite(y) ? std::max(high, y) : high;
  }
  return high;
}

Axis from_zero(double high) {
  const double gap = chart::nice_gap(high, 5);
  return chart::linear_axis(0, std::ceil(high / gap) * gap, 5);
}

Axis axis_of(const Panel& panel) {
  const double high = largest(panel);
  if (high == 0 || panel.scale == Panel::Scale::share) return chart::linear_axis(0, 1, 5);
  if (panel.scale == Panel::Scale::score) return from_zero(high);
  double low = INFINITY;
  for (const Line& line : panel.lines) {
    for (double y : line.y) low = std::isfinite(y) && y > 0 ? std::min(low, y) : low;
  }
  if (high < 10 * low) return from_zero(high);
  return chart::decades(std::max(low, high * 1e-8), high);
}

std::string heading(const Panel& panel, const Axis& y) {
  const std::string unit = y.logarithmic ? panel.unit + ", log scale" : panel.unit;
  return unit.empty() ? panel.heading : panel.heading + " (" + unit + ")";
}

std::string percent(double share) { return chart::tick_label(100 * share) + " %"; }

}  // namespace

std::string panels_svg(const std::vector<Panel>& panels, const PictureOptions& options) {
  double last = 0;
  for (const Panel& panel : panels) {
    for (const Line& line : panel.lines) {
      for (double x : line.x) last = std::isfinite(x) ? std::max(last, x) : last;
    }
  }
  Axis x = chart::linear_axis(0, last, 8);
  x.begin = chart::kLeft, x.end = chart::kWidth - chart::kRight;
  const bool legend = options.names.size() > 1;
  double top = (options.subtitle.empty() ? 76 : 94) + (legend ? 22 : 0);
  const double bottom = top + static_cast<double>(panels.size()) * (chart::kPanel + chart::kGap) - chart::kGap;

  std::string out = chart::head(bottom + 50, options.title, options.subtitle);
  if (legend) out += chart::legend(options.names, top - 36);
  for (const Panel& panel : panels) {
    Axis y = axis_of(panel);
    y.begin = top + chart::kPanel, y.end = top;
    const bool in_percent = panel.scale == Panel::Scale::share;
    out += in_percent ? chart::frame(x, y, heading(panel, y), options.marks, percent)
                      : chart::frame(x, y, heading(panel, y), options.marks);
    for (const Line& line : panel.lines) out += chart::polyline(line.x, line.y, x, y, line.color);
    top += chart::kPanel + chart::kGap;
  }
  return out + chart::label("tick", (x.begin + x.end) / 2, bottom + 39, options.x_label, "middle") + "</svg>\n";
}

std::string curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options) {
  PictureOptions picture{.title = options.title, .subtitle = options.subtitle, .marks = options.rate_drops};
  if (!options.rate_drops.empty()) picture.x_label = "training step (dashed: the learning rate drops)";
  Panel loss{Panel::Scale::loss, "loss", "nats a symbol", {}}, accuracy{Panel::Scale::share, "accuracy", "", {}};
  for (size_t i = 0; i < runs.size(); ++i) {
    picture.names.push_back(runs[i].name);
    loss.lines.push_back({i, runs[i].steps, runs[i].loss});
    accuracy.lines.push_back({i, runs[i].steps, runs[i].accuracy});
  }
  return panels_svg({loss, accuracy}, picture);
}

void save_curve(const std::string& path, const std::vector<CurveRun>& runs, const CurveOptions& options) {
  linnet::write_file(path, curve_svg(runs, options));
}

}  // namespace example
