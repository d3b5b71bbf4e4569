// Metrics: a CSV file with one row a logged step.
#pragma once
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace example {

/// A CSV file in memory: the first column is the step.
struct MetricsTable {
  std::string path;  ///< the file, for messages
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;

  std::vector<double> column(const std::string& name) const;  ///< throws Error where there is none
};

/// Ends at the first line that is not whole, as a kill leaves it.
MetricsTable read_metrics(const std::string& path);

/// What a resumed run keeps of its earlier rows: those up to last_step, and of those only multiples of `every` (the
/// last row of a finished run may lie between), so that it neither repeats nor loses one.
struct EarlierMetrics {
  std::string text{};  ///< of the earlier run's file
  int64_t last_step = 0, every = 1;
};

class MetricsWriter {
 public:
  MetricsWriter(std::string path, std::vector<std::string> columns, const EarlierMetrics& earlier = {});
  /// Goes on with a file that may exist, with every row up to last_step.
  static std::unique_ptr<MetricsWriter> go_on(const std::string& path, std::vector<std::string> columns,
                                              int64_t last_step);
  void add(int64_t step, const std::vector<double>& values);  ///< writes the row through to the file

 private:
  std::string path_;
  size_t width_;
  std::ofstream out_;
};

}  // namespace example
