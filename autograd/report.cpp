// tape.report(): what was recorded, as rows, as a table and as a Graphviz graph.
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
  std::ostringstream out;
  char line[160];
  auto write = [&](const char* row, const char* op, const char* shape, const char* bytes, const char* forward,
                   const char* backward) {
    std::snprintf(line, sizeof line, "%5s  %-22s %-24s %14s %12s %12s\n", row, op, shape, bytes, forward, backward);
    out << line;
  };
  auto milliseconds = [](double ms) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", ms);
    return std::string(text);
  };
  write("row", "op", "output", "bytes kept", "forward ms", "backward ms");
  double forward = 0, backward = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const TapeRow& row = rows[i];
    std::string output = name(row.dtype);
    output.append(" ").append(row.shape.str());
    write(std::to_string(i).c_str(), row.op.c_str(), output.c_str(), std::to_string(row.bytes_kept).c_str(),
          milliseconds(row.forward_ms).c_str(), milliseconds(row.backward_ms).c_str());
    forward += row.forward_ms;
    backward += row.backward_ms;
  }
  write("", "total", "", std::to_string(bytes_kept()).c_str(), milliseconds(forward).c_str(),
        milliseconds(backward).c_str());
  return out.str();
}

std::string TapeReport::dot() const {
  std::ostringstream out;
  out << "digraph tape {\n  rankdir=TB;\n  node [shape=box, fontname=\"Helvetica\"];\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    out << "  n" << i << " [label=\"" << rows[i].op << "\\n"
        << name(rows[i].dtype) << ' ' << rows[i].shape << "\\n"
        << rows[i].bytes_kept << " bytes kept\"];\n";
    for (int64_t input : rows[i].inputs)
      if (input >= 0) out << "  n" << input << " -> n" << i << ";\n";
  }
  out << "}\n";
  return out.str();
}

}  // namespace linnet
