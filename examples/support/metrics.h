// Metrics: a CSV file with one row a logged step.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace example {

/// A CSV file in memory: the first column is the step.
struct MetricsTable {
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;

  std::vector<double> column(const std::string& name) const;  ///< throws Error where there is none
};

/// Ends at the first line that is not whole, as a kill leaves it.
MetricsTable read_metrics(const std::string& path);

class MetricsWriter {
 public:
  /// Keeps the rows of an earlier run up to last_step, and of those only multiples of `every` (the last row of a
  /// finished run may lie between): so a resumed run neither repeats nor loses a row. last_step = 0 starts anew.
  MetricsWriter(std::string path, std::vector<std::string> columns, int64_t last_step = 0, int64_t every = 1);
  void add(int64_t step, const std::vector<double>& values);  ///< writes the row through to the file

 private:
  std::string path_;
  size_t width_;
  std::ofstream out_;
};

}  // namespace example
