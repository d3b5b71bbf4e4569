#include "bench/support/scaling_chart.h"

#include <algorithm>
#include <cstdio>

#include "linnet/core/atomic_file.h"
#include "support/chart.h"
#include "support/progress.h"

namespace bench {
namespace {

namespace chart = example::chart;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

chart::Axis decades_of(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return chart::decades(*low, *high);
}

/// A tick at every second power of two.
chart::Axis lengths(double low, double high) {
  chart::Axis axis;
  axis.low = low;
  axis.high = std::max(high, 2 * low);
  axis.logarithmic = true;
  for (double tick = low; tick <= axis.high; tick *= 4) axis.ticks.push_back(tick);
  return axis;
}

}  // namespace

void ScalingChart::add(const std::string& kind, int64_t time, double seconds, double bytes) {
  samples_[kind][time].seconds.push_back(seconds);
  samples_[kind][time].bytes.push_back(bytes);
}

std::map<std::string, ScalingChart::Line> ScalingChart::lines() const {
  std::map<std::string, Line> all;
  for (const auto& [kind, of_time] : samples_) {
    for (const auto& [time, samples] : of_time) {
      all[kind].time.push_back(static_cast<double>(time));
      all[kind].milliseconds.push_back(1e3 * median(samples.seconds));
      all[kind].mebibytes.push_back(median(samples.bytes) / (1 << 20));
    }
  }
  return all;
}

std::string ScalingChart::table() const {
  std::string text = "per sample     length           ms          MiB\n";
  for (const auto& [kind, line] : lines()) {
    for (size_t i = 0; i < line.time.size(); ++i) {
      char row[96];
      std::snprintf(row, sizeof row, "%-10s %10s %12.4g %12.4g\n", kind.c_str(),
                    example::with_commas(static_cast<int64_t>(line.time[i])).c_str(), line.milliseconds[i],
                    line.mebibytes[i]);
      text += row;
    }
  }
  return text;
}

void ScalingChart::save(const std::string& file, int threads) const {
  const auto all = lines();
  std::vector<std::string> names;
  std::vector<double> times, milliseconds, mebibytes;
  for (const auto& [kind, line] : all) {
    names.push_back(kind);
    times.insert(times.end(), line.time.begin(), line.time.end());
    milliseconds.insert(milliseconds.end(), line.milliseconds.begin(), line.milliseconds.end());
    mebibytes.insert(mebibytes.end(), line.mebibytes.begin(), line.mebibytes.end());
  }
  const double top = 116;
  const auto [shortest, longest] = std::minmax_element(times.begin(), times.end());
  chart::Axis x = lengths(*shortest, *longest), time = decades_of(milliseconds), memory = decades_of(mebibytes);
  x.begin = chart::kLeft, x.end = chart::kWidth - chart::kRight;
  time.begin = top + chart::kPanel, time.end = top;
  memory.begin = top + 2 * chart::kPanel + chart::kGap, memory.end = top + chart::kPanel + chart::kGap;

  std::string out = chart::head(memory.begin + 50, "Attention, forward and backward, per sample",
                                "causal, 8 heads of 32, " + std::to_string(threads) +
                                    (threads == 1 ? " thread" : " threads") + "; all axes logarithmic");
  out += chart::legend(names, 80);
  out += chart::frame(x, time, "time (ms)");
  size_t series = 0;
  for (const auto& [kind, line] : all) out += chart::polyline(line.time, line.milliseconds, x, time, series++);
  out += chart::frame(x, memory, "peak memory (MiB)");
  series = 0;
  for (const auto& [kind, line] : all) out += chart::polyline(line.time, line.mebibytes, x, memory, series++);
  out += chart::label("tick", (x.begin + x.end) / 2, memory.begin + 39, "length of the sequence", "middle");
  linnet::write_file(file, out + "</svg>\n");
}

}  // namespace bench
