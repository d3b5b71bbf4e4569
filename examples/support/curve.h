// Curves: loss and accuracy of one or several runs as an SVG picture, readable on light and dark pages, without Python.
#pragma once
#include <string>
#include <vector>

namespace example {

struct CurveRun {
  std::string name;                           ///< as the legend shows it
  std::vector<double> steps, loss, accuracy;  ///< the same length; accuracy in 0 .. 1
};

struct CurveOptions {
  std::string title, subtitle{};
  std::vector<double> rate_drops{};  ///< steps marked with a dashed line
};

/// Two panels over the steps: loss (on a log scale where it spans more than a decade) and accuracy in percent. Long
/// runs are thinned out; values that are not finite break the line.
std::string curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options);
void save_curve(const std::string& path, const std::vector<CurveRun>& runs, const CurveOptions& options);

}  // namespace example
