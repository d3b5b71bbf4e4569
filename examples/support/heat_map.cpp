#include "support/heat_map.h"

#include <algorithm>
#include <cmath>

#include "linnet/core/error.h"
#include "support/chart.h"

namespace example {
namespace {

constexpr double kNames = 150, kLargestCell = 28;  // room for the rows' names

size_t longest(const std::vector<std::string>& names) {
  size_t length = 0;
  for (const std::string& name : names) length = std::max(length, name.size());
  return length;
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const size_t rows = map.rows.size(), columns = map.columns.size();
  LINNET_CHECK(rows > 0 && columns > 0 && map.shares.size() == rows * columns, "heat_map: ", map.shares.size(),
               " shares for ", rows, " rows and ", columns, " columns");
  LINNET_CHECK(map.shares.size() <= 40000, "heat_map: ", rows, " rows and ", columns,
               " columns are too many to draw, at most 40,000 cells are");
  const double left = kNames, right = chart::kWidth - 60;  // the last column's name leans over the edge
  const double size = std::min(kLargestCell, (right - left) / static_cast<double>(columns));
  const double top = 80 + std::min(140.0, 6.0 * static_cast<double>(longest(map.columns)));
  std::string out = chart::head(top + size * static_cast<double>(rows) + 24, map.title, map.subtitle);
  for (size_t j = 0; j < columns; ++j)
    out += chart::tilted_label("tick", left + size * (static_cast<double>(j) + 0.6), top - 6, map.columns[j]);
  for (size_t i = 0; i < rows; ++i) {
    const double y = top + size * static_cast<double>(i);
    out += chart::label("tick", left - 8, y + size / 2 + 4, map.rows[i], "end");
    for (size_t j = 0; j < columns; ++j) {
      const double share = map.shares[i * columns + j];
      LINNET_CHECK(std::isfinite(share), "heat_map: the share of row ", i, ", column ", j, " is ", share);
      const double x = left + size * static_cast<double>(j);
      const std::string text =
          map.rows[i] + " looks at " + map.columns[j] + ": " + chart::tick_label(std::round(1000 * share) / 1000);
      out += chart::cell(x, y, size - 1, size - 1, share, text);
    }
  }
  return out + "</svg>\n";
}

}  // namespace example
