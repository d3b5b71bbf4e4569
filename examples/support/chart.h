// Charts: axes, frames and lines of SVG pictures, readable on light and dark pages, without Python.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace example::chart {

inline constexpr double kWidth = 760, kLeft = 74, kRight = 24, kPanel = 200, kGap = 62;

/// Values low .. high onto pixels begin .. end, and where the ticks stand.
struct Axis {
  double low = 0, high = 1, begin = 0, end = 1;
  bool logarithmic = false;
  std::vector<double> ticks;

  double at(double value) const;
};

Axis linear_axis(double low, double high, int count);  ///< about `count` ticks at round numbers
Axis decades(double low, double high);                 ///< logarithmic, a tick at each power of ten; 0 < low <= high

/// 1, 2 or 5 times a power of ten, so that there are about `count` ticks.
double nice_gap(double span, int count);

std::string tick_label(double x);
std::string label(const char* kind, double x, double y, const std::string& text, const char* anchor = "start");
/// Text that rises from (x, y) to the right.
std::string tilted_label(const char* kind, double x, double y, const std::string& text);
/// A rectangle in the first series' colour, as strong as `share` in 0 .. 1, with a text that a pointer brings up.
std::string cell(double x, double y, double width, double height, double share, const std::string& text);
std::string line(const char* kind, double x1, double y1, double x2, double y2);

/// Everything up to the first panel: size, style, title, subtitle (may be empty).
std::string head(double height, const std::string& title, const std::string& subtitle);
/// A stroke of each series' colour and its name, side by side.
std::string legend(const std::vector<std::string>& names, double y);
/// Grid, tick labels, dashed marks at some x, and a heading; the series come on top.
std::string frame(const Axis& x, const Axis& y, const std::string& heading, const std::vector<double>& marks = {},
                  const std::function<std::string(double)>& y_label = tick_label);
/// One line in the colour of `series`: long ones are thinned out, values that are not finite break it, and a single
/// point is a dot.
std::string polyline(const std::vector<double>& xs, const std::vector<double>& ys, const Axis& x, const Axis& y,
                     size_t series);

}  // namespace example::chart
