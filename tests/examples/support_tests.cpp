// The examples' support: what the shell tests cannot see from outside.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <new>
#include <sstream>

#include "copy_task/data.h"
#include "copy_task/evaluation.h"
#include "linnet/core/atomic_file.h"
#include "linnet/core/error.h"
#include "support/curve.h"
#include "support/files.h"
#include "support/metrics.h"
#include "support/minibatch.h"
#include "support/program.h"
#include "support/progress.h"
#include "support/run_directory.h"
#include "support/temp_dir.h"

using namespace example;

namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("progress says step, loss, accuracy, rate, speed and time left") {
  CHECK(progress_text({1240, 4000, 0.42134, 0.873, 0.003, 58000.3, 41}) ==
        "step 1,240/4,000  loss 0.4213  accuracy 87.30 %  rate 0.003  58,000 tokens/s  0:41 left");
  CHECK(clock_text(3675) == "1:01:15");
  CHECK(clock_text(INFINITY) == "-:--");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(999) == "999");
}

TEST_CASE("progress updates one line on a terminal and writes plain lines elsewhere") {
  for (bool terminal : {false, true}) {
    std::ostringstream out;
    Progress line(out, terminal);
    for (int step = 1; step <= 50; ++step) line.update({.step = step, .steps = 50});
    line.finish();
    const std::string text = out.str();
    CHECK(text.find("step 1/50") != std::string::npos);
    CHECK(text.find("step 50/50") != std::string::npos);
    CHECK(text.back() == '\n');
    CHECK((count(text, "\r") > 0) == terminal);
    if (terminal) CHECK(count(text, "\n") == 1);
  }
}

TEST_CASE("metrics are cut to the checkpoint's step") {
  const test_support::TempDir folder;
  const std::string path = folder / "metrics.csv";
  {
    MetricsWriter writer(path, {"step", "loss"});
    for (int step : {20, 40, 50, 60, 80}) writer.add(step, {1.0 / step});
    CHECK_THROWS_WITH_AS(writer.add(100, {}), "metrics: 0 values for 1 columns", linnet::Error);
  }
  std::ofstream(path, std::ios::app) << "100,0.0";  // a row that a kill cut off
  CHECK(read_metrics(path).rows.size() == 5);
  MetricsWriter writer(path, {"step", "loss"}, {read_text(path), 65, 20});
  CHECK(read_metrics(path).column("step") == std::vector<double>{20, 40, 60});
  writer.add(80, {0.5});
  const MetricsTable table = read_metrics(path);
  CHECK(table.column("step") == std::vector<double>{20, 40, 60, 80});
  CHECK(table.column("loss")[1] == doctest::Approx(0.025));
  CHECK_THROWS_WITH_AS(table.column("none"), (path + ": has no column none; is it the metrics.csv of a run?").c_str(),
                       linnet::Error);
}

TEST_CASE("a run folder is not overwritten") {
  const test_support::TempDir folder;
  const std::string path = folder / "a/run";
  RunDirectory::create(path, {{"dim", 64}});
  CHECK(RunDirectory::open(path).settings()["dim"] == 64);
  RunDirectory::create(path, {{"dim", 32}});  // it has no checkpoint: it never began
  CHECK(RunDirectory::open(path).settings()["dim"] == 32);
  CHECK_THROWS_AS(RunDirectory::create(path, {{"width", 32}}), linnet::Error);  // another program's
  for (const char* name : {"metrics.csv", "checkpoint.safetensors", "checkpoint-previous.safetensors",
                           "model.safetensors", "curve.svg", "summary.json"}) {
    linnet::write_file(path + "/" + name, "text");
    CHECK_THROWS_AS(RunDirectory::create(path, {{"dim", 16}}), linnet::Error);
    std::filesystem::remove(path + "/settings.json");
    CHECK_THROWS_AS(RunDirectory::create(path, {{"dim", 16}}), linnet::Error);
    CHECK(read_text(path + "/" + name) == "text");
    std::filesystem::remove(path + "/" + name);
    RunDirectory::create(path, {{"dim", 8}});
  }
  CHECK(RunDirectory::unused(path) == path + "-2");
  CHECK(RunDirectory::unused(folder / "b") == folder / "b");
  CHECK_THROWS_AS(RunDirectory::open(folder.path().native()), linnet::Error);
}

TEST_CASE("a run folder is written by one program at a time") {
  const test_support::TempDir folder;
  const std::string in_use =
      folder.path().native() + ": is in use by another program; wait for it to end, or give --out another folder";
  {
    const RunDirectory run = RunDirectory::create(folder.path().native(), {{"dim", 64}});
    const RunDirectory copy = run;
    CHECK_THROWS_WITH_AS(RunDirectory::create(folder.path().native(), {{"dim", 64}}), in_use.c_str(), linnet::Error);
    RunDirectory reader = RunDirectory::open(folder.path().native());
    CHECK(reader.settings()["dim"] == 64);
    CHECK_THROWS_WITH_AS(reader.lock(), in_use.c_str(), linnet::Error);
  }
  RunDirectory::open(folder.path().native()).lock();
}

TEST_CASE("the curve draws every run, thins long ones and survives odd values") {
  CurveRun run{"linear <1>", {}, {}, {}};
  for (int i = 1; i <= 100000; ++i) {
    run.steps.push_back(i);
    run.loss.push_back(i == 50001 ? NAN : 2.3 / i);
    run.accuracy.push_back(1 - 0.9 / i);
  }
  const std::string one = curve_svg({run}, {.title = "a & b", .rate_drops = {500}});
  CHECK(one.size() < 30000);
  CHECK(one.find("a &amp; b") != std::string::npos);
  CHECK(one.find("log scale") != std::string::npos);
  CHECK(count(one, "<line class='mark'") == 2);
  CHECK(one.find("nan") == std::string::npos);
  CHECK(count(one, "<polyline") == 3);  // the loss in two pieces, the accuracy in one
  const std::string two = curve_svg({run, {"softmax", {10, 20}, {2, 1.5}, {0.1, 0.2}}}, {.title = "t"});
  CHECK(two.find("linear &lt;1&gt;") != std::string::npos);
  CHECK(two.find("softmax") != std::string::npos);
  for (const CurveRun& odd :
       {CurveRun{"empty", {}, {}, {}}, CurveRun{"one", {5}, {2.4}, {0.1}}, CurveRun{"zero", {1, 2}, {0, 0}, {1, 1}},
        CurveRun{"inf", {1, 2}, {INFINITY, NAN}, {0, 0}}, CurveRun{"steps", {NAN, INFINITY}, {1, 1}, {0, 0}},
        CurveRun{"\x01", {1e300, -1e300}, {1e300, 1e-300}, {1e300, -1}}}) {
    const std::string svg = curve_svg({odd}, {.title = odd.name});
    CHECK(svg.find("nan") == std::string::npos);
    CHECK(svg.find("='inf") == std::string::npos);
    CHECK(svg.find('\x01') == std::string::npos);
    CHECK(svg.substr(svg.size() - 7) == "</svg>\n");
  }
}

TEST_CASE("minibatches hold every row once") {
  linnet::Generator generator{1, 2, 3};
  const auto batches = minibatches(10, 4, generator);
  REQUIRE(batches.size() == 3);
  CHECK(batches[2].numel() == 2);
  std::vector<int32_t> rows;
  for (const auto& batch : batches) {
    for (int32_t row : batch.to_vector<int32_t>()) rows.push_back(row);
  }
  CHECK(!std::is_sorted(rows.begin(), rows.end()));
  std::sort(rows.begin(), rows.end());
  for (int32_t i = 0; i < 10; ++i) CHECK(rows[static_cast<size_t>(i)] == i);
  CHECK(minibatches(3, 4, generator).size() == 1);
  CHECK_THROWS_AS(minibatches(3, 0, generator), linnet::Error);
}

TEST_CASE("copy task data are `0 w 0 w`, with only the second w as target") {
  using namespace copy_task;
  for (const TaskSize size : {TaskSize{32, 10}, TaskSize{6, 1}, TaskSize{7, 3}, TaskSize{128, 10}}) {
    const int64_t time = size.length - 1;
    const Batch batch = make_batch(size, 200, 1, Stream::training, 7);
    const auto in = batch.inputs.to_vector<int32_t>(), target = batch.targets.to_vector<int32_t>();
    std::vector<int64_t> lengths;
    int64_t counted = 0;
    for (int64_t row = 0; row < 200; ++row) {
      const int32_t* x = in.data() + row * time;
      const int32_t* y = target.data() + row * time;
      REQUIRE(x[0] == kSeparator);
      const int64_t n = std::find(x + 1, x + time, kSeparator) - x - 1;
      REQUIRE(n >= std::max<int64_t>(1, size.length / 4));
      REQUIRE(n <= (size.length - 2) / 2);
      lengths.push_back(n);
      counted += n;
      for (int64_t t = 0; t < time; ++t) {
        const bool second = t > n && t <= 2 * n;
        REQUIRE(y[t] == (second ? x[t - n] : kIgnored));  // y[n + 1 + i] = w[i] = x[1 + i]
        if (t > n + 1) REQUIRE(x[t] == (t <= 2 * n + 1 ? x[t - n - 1] : size.padding()));
        if (t >= 1 && t <= n) REQUIRE((x[t] >= 1 && x[t] <= size.symbols));
      }
    }
    CHECK(batch.counted == counted);
    CHECK(*std::min_element(lengths.begin(), lengths.end()) == size.shortest());
    CHECK(*std::max_element(lengths.begin(), lengths.end()) == size.longest());
  }
}

TEST_CASE("masked copy task data hide a fifth of each w, never the same symbol twice, and ask for what is hidden") {
  using namespace copy_task;
  for (const TaskSize size : {TaskSize{32, 10}, TaskSize{8, 1}, TaskSize{9, 3}, TaskSize{128, 10}}) {
    CAPTURE(size.length);
    const int64_t time = size.length;
    const Batch batch = make_masked_batch(size, 200, 1, Stream::training, 7);
    CHECK(batch.inputs.shape() == linnet::Shape{200, time});
    const auto in = batch.inputs.to_vector<int32_t>(), target = batch.targets.to_vector<int32_t>();
    std::vector<int64_t> places(static_cast<size_t>(time));  // how often each was hidden
    int64_t counted = 0;
    for (int64_t row = 0; row < 200; ++row) {
      const int32_t* x = in.data() + row * time;
      const int32_t* y = target.data() + row * time;
      const int64_t length = batch.lengths[static_cast<size_t>(row)], n = length / 2 - 1;
      REQUIRE((n >= size.shortest() && n <= size.longest() && length % 2 == 0));
      REQUIRE((x[0] == kSeparator && x[n + 1] == kSeparator));
      REQUIRE((y[0] == kIgnored && y[n + 1] == kIgnored));
      int64_t first = 0, second = 0;
      for (int64_t i = 1; i <= n; ++i) {
        const int64_t j = n + 1 + i;
        const bool hidden_i = x[i] == size.mask(), hidden_j = x[j] == size.mask();
        REQUIRE_FALSE((hidden_i && hidden_j));
        REQUIRE(y[i] == (hidden_i ? x[j] : kIgnored));
        REQUIRE(y[j] == (hidden_j ? x[i] : kIgnored));
        if (!hidden_i && !hidden_j) REQUIRE(x[i] == x[j]);
        REQUIRE((std::min(x[i], x[j]) >= 1 && std::min(x[i], x[j]) <= size.symbols));
        first += hidden_i, second += hidden_j;
        places[static_cast<size_t>(i)] += hidden_i;
      }
      REQUIRE(first == std::max<int64_t>(1, n / 5));
      REQUIRE(second == first);
      for (int64_t t = length; t < time; ++t) REQUIRE((x[t] == size.padding() && y[t] == kIgnored));
      counted += first + second;
    }
    CHECK(batch.counted == counted);
    for (int64_t i = 1; i <= size.shortest(); ++i) CHECK(places[static_cast<size_t>(i)] > 0);
  }
  const auto at = [&](uint64_t seed, Stream stream, uint64_t step) {
    return make_masked_batch({32, 10}, 8, seed, stream, step).inputs.to_vector<int32_t>();
  };
  CHECK(at(1, Stream::training, 0) == at(1, Stream::training, 0));
  CHECK(at(1, Stream::training, 0) != at(1, Stream::training, 1));
  CHECK(at(1, Stream::training, 0) != at(2, Stream::training, 0));
  CHECK(at(1, Stream::training, 0) != at(1, Stream::evaluation, 0));
}

TEST_CASE("copy task batches are a function of seed, stream and step, and all differ") {
  using namespace copy_task;
  const TaskSize size{32, 10};
  const auto at = [&](uint64_t seed, Stream stream, uint64_t step) {
    return make_batch(size, 8, seed, stream, step).inputs.to_vector<int32_t>();
  };
  const auto first = at(1, Stream::training, 0);
  CHECK(first == at(1, Stream::training, 0));
  CHECK(first != at(1, Stream::training, 1));
  CHECK(first != at(2, Stream::training, 0));
  CHECK(first != at(1, Stream::evaluation, 0));
  CHECK(first != at(1, Stream::demonstration, 0));
}

TEST_CASE("recurrent and parallel logits may differ by what f32 rounds, relative to the largest of them") {
  using namespace copy_task;
  linnet::manual_seed(1);
  const TaskSize size{64, 10};
  linnet::models::CausalLM net({.vocab = 12, .dim = 64, .layers = 2, .heads = 4, .max_time = 64});
  const std::vector<std::vector<int32_t>> strings = demonstration_strings(size, 1, 3);
  linnet::Tensor& weight = net.head.weight.mutable_value();
  for (int64_t i = 0; i < weight.numel(); ++i) weight.mutable_data<float>()[i] *= 1e4f;
  const Copied copied = copy_recurrently(net, strings[0]);
  CHECK(copied.logit > 100);
  CHECK(copied.difference > 1e-4);
  check_agreement(copied.difference, copied.logit);
  net.head.bias.mutable_value().mutable_data<float>()[0] = NAN;  // one among good ones
  CHECK(copy_recurrently(net, strings[0]).difference == INFINITY);

  check_agreement(0.9e-4, 0.01);
  check_agreement(0.9e-2, 100);
  for (const auto& [difference, logit] : {std::pair{1.1e-4, 0.01}, {1.1e-2, 100.0}, {NAN, 1.0}, {INFINITY, INFINITY}})
    CHECK_THROWS_AS(check_agreement(difference, logit), linnet::Error);
}

TEST_CASE("a program that runs out of memory says so") {
  CLI::App app("", "program");
  char name[] = "program";
  char* arguments[] = {name};
  std::ostringstream errors;
  std::streambuf* const before = std::cerr.rdbuf(errors.rdbuf());
  const int code = run_program(app, 1, arguments, []() -> int { throw std::bad_alloc(); });
  std::cerr.rdbuf(before);
  CHECK(code == kFailed);
  CHECK(errors.str() == "program: there is not enough memory; smaller sizes need less\n");
}

TEST_CASE("whole numbers on the command line are read as they stand, or refused") {
  CHECK(parse_integer("--n", "-9223372036854775808") == INT64_MIN);
  CHECK(parse_integer("--n", "9223372036854775807") == INT64_MAX);
  CHECK(parse_integer("--n", "010") == 10);
  for (const char* text : {"", " 1", "1 ", "0x1", "1e3", "2.5", "9223372036854775808", "-9223372036854775809"})
    CHECK_THROWS_AS(parse_integer("--n", text), CLI::ValidationError);
}
