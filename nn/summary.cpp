#include "linnet/nn/summary.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>

namespace linnet::nn {
namespace {

using Row = std::array<std::string, 5>;

/// 1234567 as "1,234,567".
std::string grouped(int64_t n) {
  std::string text = std::to_string(n);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

void write(std::ostream& out, const Row& row, const std::array<size_t, 5>& width) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string gap(width[i] - row[i].size(), ' ');
    line += (i ? "  " : "") + (i == 3 ? gap + row[i] : row[i] + gap);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

}  // namespace

std::string summary(const Module& module) {
  std::map<std::string, std::string> kinds;
  for (const auto& [name, part] : module.modules()) kinds[name] = part->kind();
  const auto kind_of = [&](const std::string& name) {
    const size_t dot = name.rfind('.');
    return kinds.at(dot == std::string::npos ? "" : name.substr(0, dot));
  };

  std::vector<Row> rows{{"name", "layer", "shape", "parameters", "trainable"}};
  int64_t total = 0, trainable = 0, bytes = 0;
  for (const auto& [name, value] : module.named_parameters()) {
    rows.push_back(
        {name, kind_of(name), value.shape().str(), grouped(value.numel()), value.requires_grad() ? "yes" : "no"});
    total += value.numel();
    bytes += value.value().bytes();
    if (value.requires_grad()) trainable += value.numel();
  }
  for (const auto& [name, first] : module.tied_names()) rows.push_back({name, kind_of(name), "= " + first, "0", ""});
  for (const auto& [name, value] : module.named_buffers()) {
    rows.push_back({name, kind_of(name), value.shape().str(), "0", "buffer"});
    bytes += value.bytes();
  }

  std::array<size_t, 5> width{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::ostringstream out;
  for (const Row& row : rows) write(out, row, width);
  out << module.kind() << ": " << grouped(total) << " parameters, " << grouped(trainable) << " of them trainable, "
      << grouped(bytes) << " bytes\n";
  return out.str();
}

}  // namespace linnet::nn
