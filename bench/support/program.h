// Program: what every benchmark's main does around its own work: flags, Google Benchmark, a table of medians.
#pragma once
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "linnet/core/state_dict.h"

namespace bench {

struct Settings {
  int threads = 1;
  bool quick = false;  ///< sizes that take no time, to see that the program runs
  std::string json, filter, dump;
};

class Program {
 public:
  Program(const std::string& name, const std::string& about, int repetitions = 5);

  CLI::App app;  ///< for flags of its own
  const Settings& settings() const { return settings_; }

  /// A benchmark, which reports each iteration to a Meter. `dump`: its inputs and results, computed once, for another
  /// program to compare with.
  void add(const std::string& name, std::function<void(benchmark::State&)> measure,
           std::function<linnet::StateDict()> dump = {});

  /// Parses the flags (what it does not know goes on to Google Benchmark), lets `add_all` add benchmarks, runs those
  /// that --filter matches, then calls `after`.
  int run(
      int argc, char** argv, const std::function<void()>& add_all, const std::function<void()>& after = [] {});

 private:
  void save_dump() const;

  int repetitions_;
  Settings settings_;
  std::vector<std::pair<std::string, std::function<linnet::StateDict()>>> dumps_;
};

/// A name as Google Benchmark writes them: path({"forward", "N:512"}) is "forward/N:512".
std::string path(std::initializer_list<std::string> parts);

}  // namespace bench
