// tape.report(): what was recorded, as rows, as a table and as a Graphviz graph.
#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "linnet/autograd/tape_state.h"

namespace linnet {

TapeReport Tape::report() const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  TapeReport report;
  for (const detail::Node& node : state_->nodes) {
    TapeRow row{node.op,
                node.outputs[0].shape,
                node.outputs[0].dtype,
                node.bytes_kept,
                Milliseconds(node.forward).count(),
                Milliseconds(node.back).count(),
                {}};
    for (const detail::Edge& edge : node.inputs) row.inputs.push_back(edge.node);
    report.rows.push_back(std::move(row));
  }
  return report;
}

int64_t TapeReport::bytes_kept() const {
  int64_t total = 0;
  for (const TapeRow& row : rows) total += row.bytes_kept;
  return total;
}

std::string TapeReport::table() const {
  using Line = std::array<std::string, 6>;
  auto milliseconds = [](double ms) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", ms);
    return std::string(text);
  };
  std::vector<Line> lines{{"row", "op", "output", "bytes kept", "forward ms", "backward ms"}};
  double forward = 0, backward = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TapeRow& row = rows[i];
    std::string output = name(row.dtype);
    output.append(" ").append(row.shape.str());
    lines.push_back({std::to_string(i), row.op, output, std::to_string(row.bytes_kept), milliseconds(row.forward_ms),
                     milliseconds(row.backward_ms)});
    forward += row.forward_ms;
    backward += row.backward_ms;
  }
  lines.push_back({"", "total", "", std::to_string(bytes_kept()), milliseconds(forward), milliseconds(backward)});
  std::array<size_t, 6> width{5, 22, 24, 14, 12, 12};
  for (const Line& line : lines)
    for (size_t i = 0; i < line.size(); ++i) width[i] = std::max(width[i], line[i].size());
  std::string out;
  for (const Line& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string gap(width[i] - line[i].size(), ' ');
      out += (i == 0 ? "" : i == 1 ? "  " : " ") + (i == 1 || i == 2 ? line[i] + gap : gap + line[i]);
    }
    out += '\n';
  }
  return out;
}

namespace {

/// As it stands between quotes in a Graphviz file.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string TapeReport::dot() const {
  std::ostringstream out;
  out << "digraph tape {\n  rankdir=TB;\n  node [shape=box, fontname=\"Helvetica\"];\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    out << "  n" << i << " [label=\"" << escaped(rows[i].op) << "\\n"
        << name(rows[i].dtype) << ' ' << rows[i].shape << "\\n"
        << rows[i].bytes_kept << " bytes kept\"];\n";
    for (int64_t input : rows[i].inputs)
      if (input >= 0) out << "  n" << input << " -> n" << i << ";\n";
  }
  out << "}\n";
  return out.str();
}

}  // namespace linnet
