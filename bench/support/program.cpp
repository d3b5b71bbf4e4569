#include "bench/support/program.h"

#include <regex>

#include "linnet/core/dispatch.h"
#include "linnet/core/error.h"
#include "linnet/core/safetensors.h"
#include "linnet/core/threads.h"
#include "support/program.h"

namespace bench {
namespace {

/// Of a benchmark that is repeated, the medians alone; the file of --json holds everything.
class Medians : public benchmark::ConsoleReporter {
 public:
  Medians() : ConsoleReporter(OO_Tabular) {}

  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    for (const Run& run : runs)
      if (run.error_occurred || run.repetitions <= 1 || run.aggregate_name == "median") shown.push_back(run);
    if (!shown.empty()) ConsoleReporter::ReportRuns(shown);
  }
};

}  // namespace

Program::Program(const std::string& name, const std::string& about, int repetitions)
    : app(about, name), repetitions_(repetitions) {
  app.add_option("--threads", settings_.threads, "threads of linnet and of BLAS (1)")->check(CLI::PositiveNumber);
  app.add_option("--filter", settings_.filter, "run only benchmarks whose name this regular expression matches");
  app.add_option("--json", settings_.json, "also write everything into this file, as Google Benchmark's JSON");
  app.add_option("--dump", settings_.dump,
                 "instead of timing, compute the one benchmark that --filter names and write what went in and came out "
                 "to this safetensors file");
  app.add_flag("--quick", settings_.quick, "tiny sizes, to see that it runs; the figures mean nothing");
  app.allow_extras();
  app.footer("Further flags are Google Benchmark's, such as --benchmark_repetitions=9 and --benchmark_min_time=1.");
}

void Program::add(const std::string& name, std::function<void(benchmark::State&)> measure,
                  std::function<linnet::StateDict()> dump) {
  benchmark::RegisterBenchmark(name.c_str(), std::move(measure))->UseManualTime()->Unit(benchmark::kMillisecond);
  if (dump) dumps_.push_back({name, std::move(dump)});
}

void Program::save_dump() const {
  for (const auto& [name, dump] : dumps_) {
    if (std::regex_search(name, std::regex(settings_.filter))) return linnet::save_safetensors(settings_.dump, dump());
  }
  linnet::fail("--dump: --filter ", settings_.filter, " names no benchmark");
}

int Program::run(int argc, char** argv, const std::function<void()>& add_all, const std::function<void()>& after) {
  return example::run_program(app, argc, argv, [&] {
    linnet::set_num_threads(settings_.threads);
    std::vector<std::string> words = {app.get_name(),
                                      "--benchmark_repetitions=" + std::to_string(settings_.quick ? 2 : repetitions_),
                                      settings_.quick ? "--benchmark_min_time=0.001" : "--benchmark_min_time=0.2"};
    if (!settings_.filter.empty()) words.push_back("--benchmark_filter=" + settings_.filter);
    if (!settings_.json.empty())
      words.insert(words.end(), {"--benchmark_out_format=json", "--benchmark_out=" + settings_.json});
    for (const std::string& extra : app.remaining()) words.push_back(extra);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return example::kBadFlags;

    benchmark::AddCustomContext("threads", std::to_string(settings_.threads));
    benchmark::AddCustomContext("level", linnet::name(linnet::level()));
    add_all();
    if (!settings_.dump.empty()) return save_dump(), 0;
    Medians medians;
    LINNET_CHECK(benchmark::RunSpecifiedBenchmarks(&medians) > 0, "--filter ", settings_.filter, " names no benchmark");
    after();
    return 0;
  });
}

std::string path(std::initializer_list<std::string> parts) {
  std::string whole;
  for (const std::string& part : parts) whole += (whole.empty() ? "" : "/") + part;
  return whole;
}

}  // namespace bench
