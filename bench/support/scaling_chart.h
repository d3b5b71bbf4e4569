// ScalingChart: time and memory per sample over the length of the sequence, as a table and as a picture.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bench {

class ScalingChart {
 public:
  void add(const std::string& kind, int64_t time, double seconds, double bytes);  ///< one repetition
  std::string table() const;                                                      ///< medians
  void save(const std::string& file, int threads) const;                          ///< an SVG with logarithmic axes

 private:
  struct Line {
    std::vector<double> time, milliseconds, mebibytes;
  };
  std::map<std::string, Line> lines() const;

  struct Samples {
    std::vector<double> seconds, bytes;
  };
  std::map<std::string, std::map<int64_t, Samples>> samples_;
};

}  // namespace bench
