// The project's promise about memory: backward holds the gradients and a fixed amount beside them, no state per step;
// and a state in 2,048 steps, kept for it.
#include "linnet/autograd/tape.h"
#include "linnet/core/random.h"
#include "linnet/core/storage.h"
#include "linnet/core/threads.h"
#include "support/arrays.h"
#include "support/linear_attention.h"

using namespace linnet;

namespace {

constexpr int64_t kHeads = 4, kDim = 24, kWidth = 40;

struct Bytes {
  double peak, requested, kept;
};

/// What backward asks for above what is alive when it begins: at most at once, and in all; and what the tape held.
Bytes measure(int64_t time, bool fused) {
  const int64_t dim = fused ? kWidth : kDim;
  Tape tape;
  Variable q, k, v, out;
  if (fused) {
    q = Variable::leaf(Tensor::normal({1, time, 3, kHeads, dim}));
    out = linear_attention_qkv(q, {.causal = true});
  } else {
    q = Variable::leaf(Tensor::normal({1, time, kHeads, dim}));
    k = Variable::leaf(Tensor::normal({1, time, kHeads, dim}));
    v = Variable::leaf(Tensor::normal({1, time, kHeads, kWidth}));
    out = linear_attention(q, k, v, {.causal = true});
  }
  const Tensor seed = Tensor::full(out.shape(), 1);
  const auto kept = static_cast<double>(tape.bytes_kept());
  reset_peak();
  const MemoryStats before = memory_stats();
  tape.backward(out, seed);
  const MemoryStats after = memory_stats();
  return {static_cast<double>(after.peak - before.live), static_cast<double>(after.requested - before.requested), kept};
}

}  // namespace

TEST_CASE("backward of causal linear attention asks for a + b N bytes: the gradients and a fixed amount") {
  if (test::on_cuda()) return;  // the CPU's memory is what is measured
  for (const bool fused : {false, true}) {
    const int64_t dim = fused ? kWidth : kDim;
    const double gradients = 4.0 * kHeads * static_cast<double>(2 * dim + kWidth);
    const std::vector<int64_t> times = {4096, 16384, 65536};
    std::vector<Bytes> bytes;
    for (int64_t time : times) bytes.push_back(measure(time, fused));
    const double a = bytes[0].peak - gradients * 4096;
    CHECK(a >= 0);
    CHECK(a < 2048 * gradients);  // a few states, and of each head a piece as it was staged
    for (size_t i = 0; i < times.size(); ++i) {
      const int64_t states = times[i] / 2048 - 1;
      CHECK(bytes[i].peak == a + gradients * static_cast<double>(times[i]));
      CHECK(bytes[i].requested == bytes[i].peak);  // nothing is asked for twice
      // Kept for the way back: q, k, v, o and d, and the states.
      CHECK(bytes[i].kept ==
            4.0 * kHeads * static_cast<double>((2 * dim + 2 * kWidth + 1) * times[i] + states * (dim * kWidth + dim)));
    }
  }
}

TEST_CASE("without a tape nothing stays behind but the output") {
  if (test::on_cuda()) return;  // the same
  const Tensor x = Tensor::normal({1, 4096, 2, 16});
  const int64_t before = memory_stats().live;
  {
    const Variable out = linear_attention(x, x, x, {.causal = true});
    CHECK(memory_stats().live - before == out.value().bytes());
  }
  CHECK(memory_stats().live == before);
}
