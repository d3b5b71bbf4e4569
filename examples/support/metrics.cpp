#include "support/metrics.h"

#include <filesystem>
#include <sstream>

#include "linnet/core/atomic_file.h"
#include "linnet/core/error.h"
#include "support/files.h"

namespace example {
namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream in(line);
  for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
  return cells;
}

bool parse(const std::vector<std::string>& cells, std::vector<double>& row) {
  for (const std::string& cell : cells) {
    char* end = nullptr;
    row.push_back(std::strtod(cell.c_str(), &end));
    if (cell.empty() || *end) return false;
  }
  return true;
}

std::string join(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : ",") + cell;
  return line + "\n";
}

MetricsTable parse_table(const std::string& path, const std::string& text) {
  MetricsTable table{path, {}, {}};
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::vector<std::string> cells = split(text.substr(begin, end - begin));
    if (begin == 0) {
      table.columns = cells;
      continue;
    }
    std::vector<double> row;
    if (cells.size() != table.columns.size() || !parse(cells, row)) break;
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

std::vector<double> MetricsTable::column(const std::string& name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != name) continue;
    std::vector<double> values;
    for (const auto& row : rows) values.push_back(row[i]);
    return values;
  }
  linnet::fail(path, ": has no column ", name, "; is it the metrics.csv of a run?");
}

MetricsTable read_metrics(const std::string& path) { return parse_table(path, read_text(path)); }

MetricsWriter::MetricsWriter(std::string path, std::vector<std::string> columns, const EarlierMetrics& earlier)
    : path_(std::move(path)), width_(columns.size()) {
  std::string kept = join(columns);
  const size_t whole = parse_table(path_, earlier.text).rows.size();
  std::istringstream lines(earlier.text);
  std::string line;
  std::getline(lines, line);
  for (size_t i = 0; i < whole && std::getline(lines, line); ++i) {
    const int64_t step = std::strtoll(line.c_str(), nullptr, 10);
    if (step <= earlier.last_step && step % earlier.every == 0) kept += line + "\n";
  }
  linnet::write_file(path_, kept);
  out_.open(path_, std::ios::app);
}

std::unique_ptr<MetricsWriter> MetricsWriter::go_on(const std::string& path, std::vector<std::string> columns,
                                                    int64_t last_step) {
  std::error_code ignored;
  const std::string earlier = std::filesystem::exists(path, ignored) ? read_text(path) : "";
  return std::make_unique<MetricsWriter>(path, std::move(columns), EarlierMetrics{earlier, last_step});
}

void MetricsWriter::add(int64_t step, const std::vector<double>& values) {
  LINNET_CHECK(values.size() + 1 == width_, "metrics: ", values.size(), " values for ", width_ - 1, " columns");
  std::ostringstream row;
  row.precision(9);
  row << step;
  for (double value : values) row << "," << value;
  out_ << row.str() << std::endl;
  LINNET_CHECK(out_.good(), path_, ": cannot be written; is the disk full?");
}

}  // namespace example
