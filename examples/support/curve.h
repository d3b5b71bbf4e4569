// Curves: what one or several runs did over their steps as an SVG picture, readable on light and dark pages, without
// Python.
#pragma once
#include <string>
#include <vector>

namespace example {

/// One line. Those of the same colour, 0, 1, ..., share a name in the legend.
struct Line {
  size_t color = 0;
  std::vector<double> x, y;  ///< the same length
};

struct Panel {
  enum class Scale {
    loss,
    share,
    score
  };  ///< loss: from 0, or logarithmic where it spans more than a decade;
      ///< share: 0 .. 1, shown in percent; score: from 0
  Scale scale;
  std::string heading, unit;
  std::vector<Line> lines;
};

struct PictureOptions {
  std::string title, subtitle{};
  std::vector<std::string> names{};  ///< of the colours, for a legend where there are several
  std::vector<double> marks{};       ///< dashed lines
  std::string x_label = "training step";
};

/// Panels one below the other over the same x. Long lines are thinned out; values that are not finite break them.
std::string panels_svg(const std::vector<Panel>& panels, const PictureOptions& options);

struct CurveRun {
  std::string name;                           ///< as the legend shows it
  std::vector<double> steps, loss, accuracy;  ///< the same length; accuracy in 0 .. 1
};

struct CurveOptions {
  std::string title, subtitle{};
  std::vector<double> rate_drops{};  ///< steps marked with a dashed line
};

/// Two panels over the steps: loss and accuracy.
std::string curve_svg(const std::vector<CurveRun>& runs, const CurveOptions& options);
void save_curve(const std::string& path, const std::vector<CurveRun>& runs, const CurveOptions& options);

}  // namespace example
