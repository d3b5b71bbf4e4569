#include "support/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "support/progress.h"

namespace example::chart {
namespace {

constexpr size_t kMostPoints = 400;

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", x);
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

size_t color(size_t series) { return series % kColorCount; }

}  // namespace

double Axis::at(double value) const {
  const double v = std::clamp(value, low, high);
  const double t = logarithmic ? std::log(v / low) / std::log(high / low) : (v - low) / (high - low);
  return begin + t * (end - begin);
}

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

Axis decades(double low, double high) {
  Axis axis;
  axis.logarithmic = true;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  for (int e = first; e <= std::max(last, first + 1); ++e) axis.ticks.push_back(std::pow(10, e));
  axis.low = axis.ticks.front();
  axis.high = std::min(axis.ticks.back(), high * 1.6);  // no half-empty decade at the top
  std::erase_if(axis.ticks, [&](double t) { return t > axis.high * 1.000001; });
  return axis;
}

std::string tick_label(double x) {
  char text[32];
  if (x >= 1000 && x < 1e15) return with_commas(std::llround(x));
  std::snprintf(text, sizeof text, "%.6g", x);
  return text;
}

std::string label(const char* kind, double x, double y, const std::string& text, const char* anchor) {
  return std::string("<text class='") + kind + "' x='" + number(x) + "' y='" + number(y) + "' text-anchor='" + anchor +
         "'>" + escaped(text) + "</text>\n";
}

std::string tilted_label(const char* kind, double x, double y, const std::string& text) {
  const std::string at = number(x) + " " + number(y);
  return std::string("<text class='") + kind + "' transform='translate(" + at + ") rotate(-55)'>" + escaped(text) +
         "</text>\n";
}

std::string cell(double x, double y, double width, double height, double share, const std::string& text) {
  char opacity[32];
  std::snprintf(opacity, sizeof opacity, "%.3f", std::clamp(share, 0.0, 1.0));
  return "<rect class='dot c0' x='" + number(x) + "' y='" + number(y) + "' width='" + number(width) + "' height='" +
         number(height) + "' fill-opacity='" + opacity + "'><title>" + escaped(text) + "</title></rect>\n";
}

std::string line(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<line class='") + kind + "' x1='" + number(x1) + "' y1='" + number(y1) + "' x2='" + number(x2) +
         "' y2='" + number(y2) + "'/>\n";
}

std::string head(double height, const std::string& title, const std::string& subtitle) {
  std::string out = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 " + number(kWidth) + " " + number(height) +
                    "' width='" + number(kWidth) + "' height='" + number(height) + "' role='img'>\n<title>" +
                    escaped(title) + "</title>\n" + style() +
                    "<rect class='paper' width='100%' height='100%' rx='8'/>\n";
  out += label("title", 24, 34, title);
  if (!subtitle.empty()) out += label("sub", 24, 54, subtitle);
  return out;
}

std::string legend(const std::vector<std::string>& names, double y) {
  std::string out;
  double at = kLeft;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string kind = "run c" + std::to_string(color(i));
    out += line(kind.c_str(), at, y - 4, at + 22, y - 4) + label("name", at + 28, y, names[i]);
    at += 52 + 7.2 * static_cast<double>(names[i].size());
  }
  return out;
}

std::string frame(const Axis& x, const Axis& y, const std::string& heading, const std::vector<double>& marks,
                  const std::function<std::string(double)>& y_label) {
  std::string out = label("head", x.begin, y.end - 12, heading);
  for (double tick : y.ticks) {
    out += line("grid", x.begin, y.at(tick), x.end, y.at(tick));
    out += label("tick", x.begin - 8, y.at(tick) + 4, y_label(tick), "end");
  }
  for (double tick : x.ticks) {
    out += line("axis", x.at(tick), y.begin, x.at(tick), y.begin + 5);
    out += label("tick", x.at(tick), y.begin + 19, tick_label(tick), "middle");
  }
  for (double mark : marks) {
    if (mark > x.low && mark < x.high) out += line("mark", x.at(mark), y.begin, x.at(mark), y.end);
  }
  return out + line("axis", x.begin, y.begin, x.end, y.begin) + line("axis", x.begin, y.begin, x.begin, y.end);
}

std::string polyline(const std::vector<double>& xs, const std::vector<double>& ys, const Axis& x, const Axis& y,
                     size_t series) {
  const size_t stride = std::max<size_t>(1, (ys.size() + kMostPoints - 1) / kMostPoints);
  const std::string c = std::to_string(color(series));
  std::string out, points;
  int count = 0;
  auto flush = [&] {
    if (count == 1) {
      const std::string at = points.substr(0, points.find(' '));
      const size_t comma = at.find(',');
      out += "<circle class='dot c" + c + "' cx='" + at.substr(0, comma) + "' cy='" + at.substr(comma + 1) +
             "' r='2.5'/>\n";
    } else if (count > 1) {
      out += "<polyline class='run c" + c + "' points='" + points + "'/>\n";
    }
    points.clear();
    count = 0;
  };
  for (size_t i = 0; i < ys.size(); ++i) {
    if (i % stride && i + 1 != ys.size()) continue;
    if (!std::isfinite(xs[i]) || !std::isfinite(ys[i])) {
      flush();
      continue;
    }
    points += number(x.at(xs[i])) + "," + number(y.at(ys[i])) + " ";
    ++count;
  }
  flush();
  return out;
}

}  // namespace example::chart
