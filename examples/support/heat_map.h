// Heat maps: a table of shares as an SVG picture, such as which word looks at which.
#pragma once
#include <string>
#include <vector>

namespace example {

struct HeatMap {
  std::string title, subtitle{};
  std::vector<std::string> rows, columns;  ///< their names
  std::vector<double> shares;              ///< row by row, each 0 .. 1
};

/// Throws Error where the shares are not rows times columns, not finite, or more than 40,000.
std::string heat_map_svg(const HeatMap& map);

}  // namespace example
