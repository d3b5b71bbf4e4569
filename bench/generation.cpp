// Generation, token by token, with the paper's MNIST model: 8 layers, 8 heads of 32, feed-forward 1024, 256 grey
// levels.
#include <map>
#include <optional>

#include "bench/support/meter.h"
#include "bench/support/program.h"
#include "linnet/models/causal_lm.h"
#include "linnet/ops/compare.h"

namespace {

using linnet::Tensor;
using linnet::models::CausalLM;
using linnet::models::LMState;

constexpr int64_t kEarly = 10, kRun = 16;  // tokens before the timed ones, and how many are timed at once

struct Sizes {
  int64_t layers = 8, heads = 8, dim = 256, hidden = 1024, vocab = 256;
  int64_t pixels = 784, late = 10000;  // the late token: its time is to be that of an early one

  int64_t most_tokens() const { return std::max(pixels, late + kRun); }
};

class Writer {
 public:
  explicit Writer(const Sizes& s)
      : sizes(s),
        net({.vocab = s.vocab,
             .dim = s.dim,
             .layers = s.layers,
             .heads = s.heads,
             .hidden = s.hidden,
             .max_time = s.most_tokens(),
             .pre_norm = false,
             .activation = linnet::nn::Activation::relu,
             .eps = 1e-6}) {}

  /// What a step has to read: all weights but the tables, of which it reads one row each.
  int64_t weight_bytes() const {
    const int64_t unread = sizes.vocab - 1 + sizes.most_tokens() - 1;
    return 4 * (net.parameter_count() - unread * sizes.dim);
  }
  /// The likeliest next tokens.
  Tensor next(const Tensor& tokens, LMState& state) const { return linnet::argmax(net.step(tokens, state)); }

  /// After `tokens` steps, for a batch of equal sequences.
  const LMState& state_at(int64_t tokens, int64_t batch) {
    LMState& one = states_[{tokens, 1}];
    if (one.position < tokens) {
      one = net.make_state(1);
      Tensor token = Tensor::zeros({1}, linnet::Dtype::i32);
      while (one.position < tokens) token = next(token, one);
    }
    LMState& all = states_[{tokens, batch}];
    if (batch > 1 && all.position < tokens) all = one.select(Tensor::zeros({batch}, linnet::Dtype::i32));
    return all;
  }

  Sizes sizes;
  CausalLM net;

 private:
  std::map<std::pair<int64_t, int64_t>, LMState> states_;
};

/// kRun tokens after `position` others, again and again from the same state.
void measure(benchmark::State& state, Writer& writer, int64_t batch, int64_t position, int threads) {
  const LMState start = writer.state_at(position, batch);
  const bench::ReadProbe reading(writer.weight_bytes());
  const double before = reading.gigabytes_per_second(threads);
  bench::Meter meter(state, threads);
  for (auto _ : state) {
    LMState at = start;
    Tensor tokens = Tensor::zeros({batch}, linnet::Dtype::i32);
    meter.iteration(bench::seconds_of([&] {
      for (int64_t i = 0; i < kRun; ++i) tokens = writer.next(tokens, at);
    }));
  }
  const double read = std::max(before, reading.gigabytes_per_second(threads));
  const double a_token = meter.seconds() / kRun;
  meter.finish(0.5 * static_cast<double>(batch * kRun * writer.weight_bytes()));  // 2 operations a weight of 4 bytes
  state.counters["tokens_per_second"] = static_cast<double>(batch) / a_token;
  state.counters["us_per_token"] = 1e6 * a_token;
  state.counters["read_gbps"] = read;
  state.counters["read_percent"] =
      bench::Meter::percent(static_cast<double>(writer.weight_bytes()) / a_token * 1e-9, read);
}

/// Whole images by CausalLM::generate, sampling included.
void measure_images(benchmark::State& state, const Writer& writer, int64_t batch, int threads) {
  const Tensor prompt = Tensor::zeros({batch, 1}, linnet::Dtype::i32);
  bench::Meter meter(state, threads);
  for (auto _ : state)
    meter.iteration(bench::seconds_of([&] { writer.net.generate(prompt, {.tokens = writer.sizes.pixels - 1}); }));
  meter.finish(0.5 * static_cast<double>(batch * (writer.sizes.pixels - 1) * writer.weight_bytes()));
  state.counters["images_per_second"] = static_cast<double>(batch) / meter.seconds();
}

/// Logits of the first kRun tokens of fixed sequences.
linnet::StateDict dump(const Writer& writer, int64_t batch) {
  linnet::Generator generator{.seed = 1};
  std::vector<int32_t> all_tokens;
  linnet::StateDict all;
  all.add("before", writer.net.state_dict());
  LMState state = writer.net.make_state(batch);
  for (int64_t t = 0; t < kRun; ++t) {
    std::vector<int32_t> tokens;
    for (int64_t b = 0; b < batch; ++b) tokens.push_back(static_cast<int32_t>(generator.below(writer.sizes.vocab)));
    all.set("logits." + std::to_string(t), writer.net.step(Tensor::from(tokens, {batch}), state).clone());
    all_tokens.insert(all_tokens.end(), tokens.begin(), tokens.end());
  }
  all.set("tokens", Tensor::from(all_tokens, {kRun, batch}));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Program program("bench_generation", "Generation, token by token, with the paper's MNIST model.");
  std::vector<int64_t> batches{1, 64};
  program.app.add_option("--batch", batches, "how many sequences at once (1 64)")->check(CLI::PositiveNumber);
  std::optional<Writer> writer;
  return program.run(argc, argv, [&] {
    const int threads = program.settings().threads;
    Sizes sizes;
    if (program.settings().quick) sizes = {.layers = 1, .heads = 2, .dim = 32, .hidden = 32, .pixels = 8, .late = 32};
    writer.emplace(sizes);
    for (int64_t batch : batches) {
      const std::string size = "batch:" + std::to_string(batch);
      for (int64_t position : {kEarly, sizes.late})
        program.add(
            bench::path({"token:" + std::to_string(position), size}),
            [=, &writer](benchmark::State& state) { measure(state, *writer, batch, position, threads); },
            [=, &writer] { return dump(*writer, batch); });
      program.add(bench::path({"images", size}),
                  [=, &writer](benchmark::State& state) { measure_images(state, *writer, batch, threads); });
    }
  });
}
