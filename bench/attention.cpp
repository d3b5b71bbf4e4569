// Causal linear attention alone: batch 1, 8 heads, elu(x) + 1 and the normaliser included, as a share of the peak.
// The operations counted are those that no form can do without, 4 D M a row and head forward and 10 D M backward.
#include "bench/support/meter.h"
#include "bench/support/program.h"
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/ops/linear_attention.h"

namespace {

using linnet::Tape;
using linnet::Tensor;
using linnet::Variable;

constexpr int64_t kHeads = 8;
constexpr linnet::LinearAttentionOptions kOptions{.causal = true,
                                                  .eps = 1e-6};  // the eps of the reference implementation

struct Case {
  bool forward, backward, fused;
  int64_t time, dim;

  std::string name() const {
    return bench::path({forward && backward ? "both"
                        : forward           ? "forward"
                                            : "backward",
                        fused ? "qkv" : "contiguous", "N:" + std::to_string(time), "D:" + std::to_string(dim)});
  }
  double flops() const { return static_cast<double>(kHeads * time * dim * dim) * (4.0 * forward + 10.0 * backward); }
};

struct Inputs {
  explicit Inputs(const Case& c) {
    linnet::Generator generator{.seed = 1};
    auto draw = [&](const linnet::Shape& shape) { return generator.normal(shape, 0, 1); };
    if (c.fused) leaves = {Variable::leaf(draw({1, c.time, 3, kHeads, c.dim}))};
    for (int i = 0; !c.fused && i < 3; ++i) leaves.push_back(Variable::leaf(draw({1, c.time, kHeads, c.dim})));
    seed = draw({1, c.time, kHeads, c.dim});
  }
  Variable attention() const {
    return leaves.size() == 1 ? linnet::linear_attention_qkv(leaves[0], kOptions)
                              : linnet::linear_attention(leaves[0], leaves[1], leaves[2], kOptions);
  }

  std::vector<Variable> leaves;  // q, k, v or qkv
  Tensor seed;                   // the gradient of the output
};

void measure(benchmark::State& state, const Case& c, int threads) {
  Inputs in(c);
  auto run = [&] {
    for (Variable& leaf : in.leaves) leaf.clear_grad();
    Tape tape;
    Variable out;
    double seconds = 0;
    const double forward = bench::seconds_of([&] { out = in.attention(); });
    if (c.forward) seconds += forward;
    if (c.backward) seconds += bench::seconds_of([&] { tape.backward(out, in.seed); });
    return seconds;
  };
  run();  // the first takes memory from the system
  bench::Meter meter(state, threads);
  for (auto _ : state) meter.iteration(run());
  meter.finish(c.flops());
  state.counters["ns_per_row"] = meter.seconds() * 1e9 / static_cast<double>(kHeads * c.time);
}

linnet::StateDict dump(const Case& c) {
  const Inputs in(c);
  Tape tape;
  const Variable out = in.attention();
  tape.backward(out, in.seed);
  linnet::StateDict all;
  for (size_t i = 0; i < in.leaves.size(); ++i) {
    const std::string name = c.fused ? "qkv" : std::string(1, "qkv"[i]);
    all.set(name, in.leaves[i].value());
    all.set("d" + name, in.leaves[i].grad());
  }
  all.set("seed", in.seed);
  all.set("out", out.value());
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  bench::Program program("bench_attention", "Causal linear attention, alone.");
  std::vector<int64_t> times{512, 4096, 65536}, dims{32, 64, 128};
  program.app.add_option("--lengths", times, "of the sequences (512 4096 65536)");
  return program.run(argc, argv, [&] {
    const bench::Settings& settings = program.settings();
    if (settings.quick) times = {64}, dims = {32};
    for (int64_t time : times)
      for (int64_t dim : dims)
        for (bool fused : {false, true})
          for (int pass : {1, 2, 3}) {
            const Case c{(pass & 1) != 0, (pass & 2) != 0, fused, time, dim};
            program.add(
                c.name(), [=, &settings](benchmark::State& state) { measure(state, c, settings.threads); },
                [=] { return dump(c); });
          }
  });
}
