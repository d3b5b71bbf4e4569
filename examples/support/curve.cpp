#include "support/curve.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "linnet/core/atomic_file.h"
#include "support/files.h"
#include "support/progress.h"

namespace example {
namespace {

constexpr double kWidth = 760, kLeft = 74, kRight = 24, kPanel = 200, kGap = 62;
constexpr size_t kMostPoints = 400;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
  return text;
}

std::string tick_label(double x) {
  char text[32];
  if (x >= 1000 && x < 1e15) return with_commas(std::llround(x));
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (static_cast<unsigned char>(c) < ' ')
      out += ' ';  // XML has no control characters
    else
      out += c;
  }
  return out;
}

std::string label(const char* kind, double x, double y, const std::string& text, const char* anchor = "start") {
  return std::string("<text class='") + kind + "' x='" + number(x) + "' y='" + number(y) + "' text-anchor='" + anchor +
         "'>" + escaped(text) + "</text>\n";
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<line class='") + kind + "' x1='" + number(x1) + "' y1='" + number(y1) + "' x2='" + number(x2) +
         "' y2='" + number(y2) + "'/>\n";
}

/// An axis: values low .. high onto pixels, and where its ticks stand.
struct Axis {
  double low = 0, high = 1, begin = 0, end = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  double at(double value) const {
    const double v = std::clamp(value, low, high);
    const double t = logarithmic ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
    return begin + t * (end - begin);
  }
};

/// 1, 2 or 5 times a power of ten, so that there are about `count` ticks.
double nice_gap(double span, int count) {
  const double raw = span / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (double step : {1.0, 2.0, 5.0}) {
    if (raw <= step * power) return step * power;
  }
  return 10 * power;
}

Axis linear_axis(double low, double high, int count) {
  Axis axis;
  axis.low = low;
  axis.high = high > low ? high : low + 1;
  const double gap = nice_gap(axis.high - axis.low, count);
  for (double t = std::ceil(axis.low / gap) * gap; t <= axis.high + gap * 1e-6; t += gap) axis.ticks.push_back(t);
  return axis;
}

Axis loss_axis(const std::vector<CurveRun>& runs) {
  double low = INFINITY, high = 0;
  for (const CurveRun& run : runs) {
    for (double loss : run.loss) {
      if (std::isfinite(loss) && loss > 0) low = std::min(low, loss), high = std::max(high, loss);
    }
  }
  if (high == 0) return linear_axis(0, 1, 5);
  if (high < 10 * low) {
    const double gap = nice_gap(high, 5);
    return linear_axis(0, std::ceil(high / gap) * gap, 5);
  }
  Axis axis;
  axis.logarithmic = true;
  low = std::max(low, high * 1e-8);
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int e = first; e <= last; ++e) axis.ticks.push_back(std::pow(10, e));
  axis.low = axis.ticks.front();
  axis.high = std::min(axis.ticks.back(), high * 1.6);  // no half-empty decade at the top
  std::erase_if(axis.ticks, [&](double t) { return t > axis.high * 1.000001; });
  return axis;
}

std::string polylines(const CurveRun& run, const std::vector<double>& values, const Axis& x, const Axis& y, int color) {
  const size_t stride = std::max<size_t>(1, (values.size() + kMostPoints - 1) / kMostPoints);
  std::string out, points;
  int count = 0;
  auto flush = [&] {
    if (count == 1) {
      const std::string at = points.substr(0, points.find(' '));
      const size_t comma = at.find(',');
      out += "<circle class='dot c" + std::to_string(color) + "' cx='" + at.substr(0, comma) + "' cy='" +
             at.substr(comma + 1) + "' r='2.5'/>\n";
    } else if (count > 1) {
      out += "<polyline class='run c" + std::to_string(color) + "' points='" + points + "'/>\n";
    }
    points.clear();
    count = 0;
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % stride && i + 1 != values.size()) continue;
    if (!std::isfinite(values[i]) || !std::isfinite(run.steps[i])) {
      flush();
      continue;
    }
    points += number(x.at(run.steps[i])) + "," + number(y.at(values[i])) + " ";
    ++count;
  }
  flush();
  return out;
}

/// Grid, tick labels, the marked steps and a heading; the curves come on top.
std::string frame(const Axis& x, const Axis& y, const std::string& heading, const CurveOptions& options, bool percent) {
  std::string out = label("head", x.begin, y.end - 12, heading);
  for (double tick : y.ticks) {
    out += line("grid", x.begin, y.at(tick), x.end, y.at(tick));
    out +=
        label("tick", x.begin - 8, y.at(tick) + 4, percent ? tick_label(100 * tick) + " %" : tick_label(tick), "end");
  }
  for (double tick : x.ticks) {
    out += line("axis", x.at(tick), y.begin, x.at(tick), y.begin + 5);
    out += label("tick", x.at(tick), y.begin + 19, tick_label(tick), "middle");
  }
  for (double step : options.rate_drops) {
    if (step > x.low && step < x.high) out += line("mark", x.at(step), y.begin, x.at(step), y.end);
  }
  return out + line("axis", x.begin, y.begin, x.end, y.begin) + line("axis", x.begin, y.begin, x.begin, y.end);
}

const char* const kStyle = R"(<style>
svg{--paper:#fff;--ink:#1f2328;--soft:#59636e;--rule:#e3e6ea;--c0:#0969da;--c1:#d1570a;--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#6b5900}
@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--soft:#9198a1;--rule:#2a3038;--c0:#58a6ff;--c1:#f0883e;--c2:#56d364;--c3:#bc8cff;--c4:#f778ba;--c5:#d4bf5a}}
text{font-family:system-ui,'Segoe UI','DejaVu Sans',Arial,sans-serif;fill:#1f2328;fill:var(--ink)}
.title{font-size:17px;font-weight:600}.sub,.tick,.name{font-size:12px}.head{font-size:13px;font-weight:600}
.sub,.tick{fill:#59636e;fill:var(--soft)}.paper{fill:#fff;fill:var(--paper)}
.grid{stroke:#e3e6ea;stroke:var(--rule)}.axis{stroke:#59636e;stroke:var(--soft)}
.mark{stroke:#59636e;stroke:var(--soft);stroke-dasharray:4 4}
.run{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}.dot{stroke-width:0}
)";
const char* const kColors[] = {"#0969da", "#d1570a", "#1a7f37", "#8250df", "#bf3989", "#6b5900"};
constexpr int kColorCount = 6;

std::string style() {
  std::string out = kStyle;
  for (int i = 0; i < kColorCount; ++i) {
    const std::string n = std::to_string(i), c = kColors[i];
    out += ".run.c" + n + "{stroke:" + c + ";stroke:var(--c" + n + ")}.dot.c" + n + "{fill:" + c + ";fill:var(--c" + n +
           ")}\n";
  }
  return out + "</style>\n";
}

}  // namespace

std::string curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options) {
  double last_step = 0;
  for (const CurveRun& run : runs) {
    for (double step : run.steps) {
      if (std::isfinite(step)) last_step = std::max(last_step, step);
    }
  }
  Axis x = linear_axis(0, last_step, 8), loss = loss_axis(runs), accuracy = linear_axis(0, 1, 5);
  const bool legend = runs.size() > 1;
  const double top = (options.subtitle.empty() ? 76 : 94) + (legend ? 22 : 0);
  x.begin = kLeft, x.end = kWidth - kRight;
  loss.begin = top + kPanel, loss.end = top;
  accuracy.begin = top + 2 * kPanel + kGap, accuracy.end = top + kPanel + kGap;
  const double height = accuracy.begin + 50;

  std::string out = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " + number(kWidth) + " " + number(height) +
                    "' width='" + number(kWidth) + "' height='" + number(height) + "' role='img'>\n<title>" +
                    escaped(options.title) + "</title>\n" + style() +
                    "<rect class='paper' width='100%' height='100%' rx='8'/>\n";
  out += label("title", 24, 34, options.title);
  if (!options.subtitle.empty()) out += label("sub", 24, 54, options.subtitle);
  double at = kLeft;
  for (size_t i = 0; legend && i < runs.size(); ++i) {
    const std::string color = "run c" + std::to_string(i % kColorCount);
    out += line(color.c_str(), at, top - 40, at + 22, top - 40) + label("name", at + 28, top - 36, runs[i].name);
    at += 52 + 7.2 * static_cast<double>(runs[i].name.size());
  }
  out += frame(x, loss, loss.logarithmic ? "loss (nats a symbol, log scale)" : "loss (nats a symbol)", options, false);
  for (size_t i = 0; i < runs.size(); ++i)
    out += polylines(runs[i], runs[i].loss, x, loss, static_cast<int>(i % kColorCount));
  out += frame(x, accuracy, "accuracy", options, true);
  for (size_t i = 0; i < runs.size(); ++i) {
    out += polylines(runs[i], runs[i].accuracy, x, accuracy, static_cast<int>(i % kColorCount));
  }
  out +=
      label("tick", (x.begin + x.end) / 2, accuracy.begin + 39,
            options.rate_drops.empty() ? "training step" : "training step (dashed: the learning rate drops)", "middle");
  return out + "</svg>\n";
}

void save_curve(const std::string& path, const std::vector<CurveRun>& runs, const CurveOptions& options) {
  linnet::write_file(path, curve_svg(runs, options));
}

}  // namespace example
